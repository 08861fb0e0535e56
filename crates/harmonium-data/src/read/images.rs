//! A folder of PNG images of one size; images in subfolders are labelled with the subfolder's name.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::array::{Array, ArrayCells, Dtype, LabelSource, Layout};
use super::inflate;
use crate::table::TextColumn;
use crate::{Error, Place, Result, catch_panic};

/// Reads the folder: its own images, or else those of its subfolders, in the order of their names.
pub(crate) fn folder(path: &Path, place: &Place) -> Result<ArrayCells> {
    let (own, folders) = list(path, place)?;
    let mut labels: Option<TextColumn> = None;
    let mut files = own;
    if files.is_empty() {
        let names = labels.insert(TextColumn::default());
        for folder in folders {
            let label = folder.file_name().unwrap_or_default().to_string_lossy();
            let (images, _) = list(&folder, &Place::file(&folder))?;
            images.iter().for_each(|_| names.push(&label));
            files.extend(images);
        }
    }
    let Some(first) = files.first() else {
        return Err(Error::empty(
            place,
            "a folder of data holds .png files, or folders of them named by their label",
        ));
    };
    let (height, width, mut pixels) = image(first)?;
    for file in &files[1..] {
        let (h, w, more) = image(file)?;
        if (h, w) != (height, width) {
            let what = format!("{h} × {w} pixels, the images before have {height} × {width}");
            return Err(Error::format(&Place::file(file), what, "all images must have one size"));
        }
        pixels.extend(more);
    }
    // Black and white images are binary, whatever number stands for white.
    if pixels.iter().all(|pixel| matches!(pixel, 0 | 255)) {
        pixels.iter_mut().for_each(|pixel| *pixel &= 1);
    }
    let layout = Layout::plain(Dtype::U8, vec![files.len(), height, width]);
    let array = Array::new(layout, pixels, 0, place)?;
    ArrayCells::new(place.clone(), array, labels.map(LabelSource::Text))
}

/// The images and the folders in a folder, sorted.
fn list(path: &Path, place: &Place) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(Error::io(place, "read"))?;
    paths.sort();
    let (folders, mut files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    files.retain(|file| file.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")));
    Ok((files, folders))
}

/// Height, width and grey values of one image.
fn image(path: &Path) -> Result<(usize, usize, Vec<u8>)> {
    let place = Place::file(path);
    let bytes = std::fs::read(path).map_err(Error::io(&place, "read"))?;
    // The decoder panics on some damaged palettes.
    let broken = || Err(Error::corrupt(&place, "PNG: it cannot be decoded"));
    catch_panic(|| decode(&bytes, &place)).unwrap_or_else(broken)
}

fn decode(bytes: &[u8], place: &Place) -> Result<(usize, usize, Vec<u8>)> {
    let broken = |e: png::DecodingError| Error::corrupt(place, format!("PNG: {e}"));
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    decoder.set_limits(png::Limits { bytes: bytes.len().saturating_mul(4).max(1 << 20) });
    let mut reader = decoder.read_info().map_err(broken)?;
    let info = reader.info();
    let (width, height) = (info.width, info.height);
    if u64::from(width) * u64::from(height) > PIXELS {
        let what = format!("{height} × {width} pixels");
        return Err(Error::format(place, what, format!("an image has at most {PIXELS} pixels")));
    }
    let claimed = reader.output_buffer_size().unwrap_or(usize::MAX) as u64;
    let believed = claimed <= inflate::UNCHECKED_RATIO * bytes.len() as u64;
    if !believed && claimed > EXPANDED * inflate::inflated(&pixel_stream(bytes)) {
        let what = format!("a PNG claims {claimed} bytes of pixels, and fewer are there");
        return Err(Error::corrupt(place, what));
    }
    let mut buffer = vec![0; claimed as usize];
    let info = reader.next_frame(&mut buffer).map_err(broken)?;
    let channels = info.color_type.samples();
    let grey = |pixel: &[u8]| match *pixel {
        [grey] | [grey, _] => grey,
        // The luma of ITU-R BT.601, in integers that sum to 1000.
        [r, g, b, ..] => {
            ((299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) + 500) / 1000) as u8
        }
        [] => 0,
    };
    let pixels = buffer[..info.buffer_size()].chunks_exact(channels).map(grey).collect();
    Ok((info.height as usize, info.width as usize, pixels))
}

/// Most pixels of an image, some more than 1920 × 1080: each is a column of its own, which takes some hundred bytes. Without a limit,
/// a file of some hundred kilobytes could unpack to gigabytes.
const PIXELS: u64 = 1 << 21;

/// Bytes of an expanded pixel for each one that is stored: a bit that stands for a colour with its opacity.
const EXPANDED: u64 = 32;

/// The zlib stream of the pixels: all IDAT chunks in a row.
fn pixel_stream(bytes: &[u8]) -> Vec<u8> {
    let (mut at, mut stream) = (8, Vec::new());
    while let Some(&[a, b, c, d, ref name @ ..]) = bytes.get(at..at + 8) {
        let start = at + 8;
        let end = start.saturating_add(u32::from_be_bytes([a, b, c, d]) as usize).min(bytes.len());
        if name == b"IDAT" {
            stream.extend(&bytes[start..end]);
        }
        at = end.saturating_add(4);
    }
    stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{Cell, Cells};
    use proptest::prelude::*;

    fn write(pixels: &[u8], width: u32, color: png::ColorType) -> Vec<u8> {
        let mut bytes = Vec::new();
        let height = (pixels.len() / (width as usize * color.samples())) as u32;
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder.write_header().unwrap().write_image_data(pixels).unwrap();
        bytes
    }

    #[test]
    fn folders_of_folders_are_labelled() {
        let dir = tempfile::tempdir().unwrap();
        for (label, pixels) in [("cat", [0, 255, 0, 255]), ("dog", [255, 255, 0, 0])] {
            let folder = dir.path().join(label);
            std::fs::create_dir(&folder).unwrap();
            let image = write(&pixels, 2, png::ColorType::Grayscale);
            std::fs::write(folder.join("a.png"), image).unwrap();
        }
        let cells = folder(dir.path(), &Place::default()).unwrap();
        assert_eq!((cells.rows(), cells.shape()), (2, Some([2, 2])));
        assert_eq!(cells.cell(1, 0), Cell::Number(1.0));
        assert_eq!(cells.cell(1, 4), Cell::Text("dog".into()));
        let odd = write(&[0, 0, 0], 3, png::ColorType::Grayscale);
        std::fs::write(dir.path().join("dog/b.png"), odd).unwrap();
        assert!(folder(dir.path(), &Place::default()).unwrap_err().to_string().contains("one size"));
    }

    #[test]
    fn colours_become_grey() {
        let bytes = write(&[255, 0, 0, 10, 20, 30], 2, png::ColorType::Rgb);
        let (_, _, pixels) = decode(&bytes, &Place::default()).unwrap();
        assert_eq!(pixels, [76, 18]);
    }

    /// A chunk of a PNG: length, name, contents, checksum.
    fn chunk(name: &[u8; 4], contents: &[u8]) -> Vec<u8> {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(contents);
        let length = (contents.len() as u32).to_be_bytes();
        [&length[..], name, contents, &crc.sum().to_be_bytes()].concat()
    }

    /// A PNG that claims this size, of palette indices of 8 bits.
    fn indexed(side: u32, palette: &[u8], transparency: &[u8], pixels: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let size = [&side.to_be_bytes()[..], &side.to_be_bytes(), &[8, 3, 0, 0, 0]].concat();
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(pixels).unwrap();
        let packed = packed.finish().unwrap();
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, contents) in [
            (b"IHDR", &size[..]),
            (b"PLTE", palette),
            (b"tRNS", transparency),
            (b"IDAT", &packed),
            (b"IEND", &[]),
        ] {
            if name != b"tRNS" || !contents.is_empty() {
                bytes.extend(chunk(name, contents));
            }
        }
        bytes
    }

    /// Palettes of every short length, cut within a colour as well, and pixels beyond them.
    #[test]
    fn short_palettes_never_panic() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        for length in 0..8 {
            for transparency in 0..5 {
                let bytes =
                    indexed(2, &[7; 8][..length], &[9; 5][..transparency], &[0, 0, 1, 0, 2, 255]);
                std::fs::write(&path, bytes).unwrap();
                let _ = image(&path);
            }
        }
    }

    #[test]
    fn images_of_too_many_pixels_are_refused() {
        let bytes = indexed(30_000, &[0; 3], &[], &[0; 100]);
        let error = decode(&bytes, &Place::default()).unwrap_err().to_string();
        assert!(error.contains("30000 × 30000"), "{error}");
    }

    proptest! {
        #[test]
        fn damaged_images_never_panic(at in 0usize..60, byte: u8, keep in 8usize..80) {
            let mut bytes = write(&[1, 2, 3, 4], 2, png::ColorType::Grayscale);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(keep);
            let _ = decode(&bytes, &Place::default());
        }
    }
}
