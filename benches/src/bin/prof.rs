#![allow(missing_docs, clippy::print_stdout)]
use harmonium_benches::data::Source;
use harmonium_kernels::fixed::*;
use harmonium_kernels::*;
use std::time::Instant;
fn best(name: &str, mut f: impl FnMut()) {
    let mut b = 1e9f64;
    for _ in 0..400 {
        let t = Instant::now();
        f();
        b = b.min(t.elapsed().as_secs_f64());
    }
    println!("{name} {:.4} ms", b * 1e3);
}
fn main() {
    for (k, n, rows) in [(784, 500, 500), (784, 500, 100), (64, 64, 2000)] {
        println!("== {k} {n} {rows}");
        let mut s = Source::new(7);
        let w = s.weights(k * n, 0.1);
        let bias: Vec<f32> = vec![0.1; n];
        let packed = s.bits(rows, k, 0.3);
        let x = bits::Rows::new(&packed, rows, k);
        let mut c = Coupling::new(Side::Binary(k), Side::Binary(n));
        c.refresh(&w);
        let inputs = [Input { direction: c.forward(), states: States::Bits(x) }];
        let field = Field::new(Side::Binary(n), rows, &bias, 1.0, &inputs);
        let mut out = vec![0; rows * bits::words(n)];
        let mut f = vec![0f32; rows * n];
        let key = Key { seed: 1, purpose: 0, block: 0, sweep: 0 };
        best("sample", || field.sample(key, &mut out));
        best("means", || field.means(&mut f));
        best("fields", || field.fields(&mut f));
        best("sample_bits f32", || f32::sample_bits(&f, n, key, &mut out));
        best("add_bits f32", || f32::add_bits(x, &w, n, 1.0, &mut f));
        let wt = w.clone();
        let mut m = vec![0f32; rows * n];
        field.means(&mut m);
        let mut g = vec![0f32; k * n];
        best("add_bits_means", || add_bits_means(x, &m, Means::Binary, n, 1e-3, &mut g));
        best("bits x bits", || {
            moments::add_bits_bits_outer(
                (x, bits::Values::Binary),
                (bits::Rows::new(&out, rows, n), bits::Values::Binary),
                1e-3,
                &mut g,
            )
        });
        let mut t = vec![0; bits::transpose_words(x)];
        best("bit transpose", || bits::transpose(x, &mut t));
        drop(inputs);
        best("refresh", || c.refresh(&wt));
    }
}
