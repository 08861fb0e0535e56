//! Sequences from categorical columns.

use std::path::Path;

use super::replace_file;
use crate::{Error, Kind, Place, Result, Table};

/// Writes the categorical columns of a table as sequences. Every category must be one character; a missing
/// entry becomes `X`. The first ignored column gives the names, otherwise they are `1`, `2`, ….
pub fn write_fasta(path: &Path, table: &Table) -> Result<()> {
    let mut columns: Vec<(usize, &crate::Block, usize)> = Vec::new();
    for block in table.blocks().iter().filter(|b| b.kind == Kind::Categorical) {
        columns.extend(block.columns.iter().enumerate().map(|(col, &place)| (place, block, col)));
    }
    columns.sort_by_key(|(place, _, _)| *place);
    let letters = |place: usize| &table.schema().columns[place].categories;
    let single = |name: &String| name.chars().count() == 1;
    if columns.is_empty() || !columns.iter().all(|(place, _, _)| letters(*place).iter().all(single)) {
        return Err(Error::schema(
            &Place::file(path),
            "only tables of categories with names of one character can be written as sequences",
            "write csv instead",
        ));
    }
    replace_file(path, |out| {
        for row in 0..table.rows() {
            match table.ignored().first() {
                Some(names) => {
                    let name = names.values.get(row).replace(['\n', '\r'], " ");
                    writeln!(out, ">{name}")?;
                }
                None => writeln!(out, ">{}", row + 1)?,
            }
            for (place, block, col) in &columns {
                let letter = match block.number(row, *col) {
                    Some(code) => letters(*place)[code as usize].as_str(),
                    None => "X",
                };
                out.write_all(letter.as_bytes())?;
            }
            writeln!(out)?;
        }
        Ok(())
    })
}
