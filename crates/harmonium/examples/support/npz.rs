//! Reads one numeric array of an `.npz` file as a matrix; a vector becomes one row.

use ndarray::Array2;
use std::io::Read;

pub(crate) fn read(path: &str, name: &str) -> Result<Array2<f64>, Box<dyn std::error::Error>> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path)?)?;
    let mut bytes = Vec::new();
    archive.by_name(&format!("{name}.npy"))?.read_to_end(&mut bytes)?;
    let (length, start) = match bytes[6] {
        1 => (u16::from_le_bytes([bytes[8], bytes[9]]) as usize, 10),
        _ => (u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize, 12),
    };
    let header = std::str::from_utf8(&bytes[start..start + length])?;
    if header.contains("'fortran_order': True") {
        return Err("arrays in Fortran order are not read here".into());
    }
    let shape = header.split('(').nth(1).and_then(|s| s.split(')').next()).ok_or("no shape")?;
    let shape: Vec<usize> = shape
        .split(',')
        .filter(|s| !s.trim().is_empty())
        .map(|s| s.trim().parse())
        .collect::<Result<_, _>>()?;
    let body = &bytes[start + length..];
    let values: Vec<f64> = if header.contains("'<f8'") {
        body.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes"))).collect()
    } else if header.contains("'<f4'") {
        body.chunks_exact(4)
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().expect("4 bytes"))))
            .collect()
    } else if header.contains("'|u1'") {
        body.iter().map(|&b| f64::from(b)).collect()
    } else {
        return Err(format!("unknown number type in {header}").into());
    };
    let shape = if shape.len() == 1 { (1, shape[0]) } else { (shape[0], shape[1]) };
    Ok(Array2::from_shape_vec(shape, values)?)
}
