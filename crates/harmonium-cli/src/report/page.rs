//! The page: sections in a frame, one file, no network.

use super::Section;
use crate::error::{Failure, Result};
use crate::figure::{STYLE, escape};
use crate::model::Model;
use crate::output::grouped;
use crate::run::RunDirectory;
use harmonium::Role;
use harmonium::tune::Trials;
use serde_json::Value;
use std::fmt::Write;

const PAGE: &str = "\
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:1000px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:28px;margin:0 0 4px}h2{font-size:20px;margin:44px 0 6px;padding-top:14px;border-top:1px solid var(--line)}
p{max-width:72ch;margin:6px 0 14px}.dim{color:var(--dim)}
.tiles{display:flex;flex-wrap:wrap;gap:12px;margin:20px 0}
.tile{border:1px solid var(--line);border-radius:10px;padding:12px 16px;min-width:150px}
.tile b{display:block;font-size:22px;font-weight:650}.tile span{color:var(--dim);font-size:13px}
.verdict{border-radius:10px;padding:12px 16px;border:1px solid var(--line);border-left:6px solid var(--c2)}
.verdict.bad{border-left-color:var(--c1)}.verdict ul{margin:6px 0 0;padding-left:20px}
.figures{display:flex;flex-wrap:wrap;gap:20px;align-items:flex-start}
figure{margin:0;max-width:100%}figcaption{color:var(--dim);font-size:13px}
svg,img{max-width:100%;height:auto}img{image-rendering:pixelated;border-radius:4px}
pre{background:color-mix(in srgb,var(--ink) 6%,transparent);padding:14px;border-radius:8px;overflow-x:auto;font-size:13px}
code{font-size:.92em}";

/// The trials of a search, the best one first.
fn trials(out: &mut String, run: &RunDirectory) -> Result<()> {
    if !run.dir.join("tune.jsonl").is_file() {
        return Ok(());
    }
    let trials = Trials::read(&run.dir)?;
    let _ = write!(
        out,
        "<h2>Trials</h2><p>The best stage of every trial, by the log-likelihood of held-out rows in nats. The error is that of \
         ln Z.</p><table><tr><th>trial</th><th>settings</th><th>updates</th><th>log-likelihood</th></tr>"
    );
    for record in trials.ranking() {
        let cells = [
            record.trial.to_string(),
            crate::output::setting(&record.setting),
            crate::output::grouped(record.updates),
            crate::output::score(record),
        ];
        let cells: String = cells.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
        let _ = write!(out, "<tr>{cells}</tr>");
    }
    out.push_str("</table>");
    Ok(())
}

/// The whole page.
pub(crate) fn page(model: &Model, run: &RunDirectory, sections: &[Section]) -> Result<String> {
    let evaluation: Value = std::fs::read_to_string(run.evaluation())
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let config =
        std::fs::read_to_string(run.config()).map_err(|e| Failure::io("read", &run.config(), &e))?;
    let data = model.provenance.details.get("data").map_or("data", String::as_str);
    let short = std::path::Path::new(data).file_name().map_or(data.into(), |n| n.to_string_lossy());
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\">\
         <title>{0}: harmonium report</title><style>{STYLE}\n{PAGE}</style></head><body><main><h1>{0}</h1>",
        escape(&short)
    );
    let layers: Vec<String> = model.machine.members().iter().map(layer).collect();
    let _ = write!(out, "<p class=\"dim\">{}</p>", escape(&layers.join(" · ")));
    tiles(&mut out, model, &evaluation);
    verdict(&mut out, &evaluation);
    trials(&mut out, run)?;
    for s in sections {
        let _ =
            write!(out, "<h2>{}</h2><p>{}</p><div class=\"figures\">", escape(s.title), prose(&s.words));
        for (name, figure) in &s.figures {
            let caption = caption(name);
            let _ = write!(
                out,
                "<figure>{}<figcaption>{}</figcaption></figure>",
                figure.html(&caption),
                escape(&caption)
            );
        }
        out.push_str("</div>");
    }
    let _ = write!(
        out,
        "<h2>Configuration</h2><p>Repeat this run with <code>harmonium train --config config.toml</code>.</p><pre>{}</pre>",
        escape(config.trim_end())
    );
    let _ = writeln!(
        out,
        "<p class=\"dim\">Written by harmonium {}.</p></main></body></html>",
        env!("CARGO_PKG_VERSION")
    );
    Ok(out)
}

/// Words for the page, with what stands between backticks as code.
fn prose(words: &str) -> String {
    let mut out = String::new();
    for (i, piece) in escape(words).split('`').enumerate() {
        match i % 2 {
            0 => out += piece,
            _ => out += &format!("<code>{piece}</code>"),
        }
    }
    out
}

/// What is said below a figure.
fn caption(name: &str) -> String {
    let words = match name {
        "likelihood" => "log-likelihood at the models kept along the run; bars are 95 % intervals",
        "pseudo-likelihood" => "pseudo-log-likelihood, cheap enough to follow all the time",
        "gradient" => "norm of the gradient",
        "chains" => "chains from two starts: lines are means, bands one standard deviation",
        "chains-over-sweeps" => {
            "six chains from random states, after 0, 1, 2, 5, 10, 20, 50, 100, 200, 400, 700 and 1000 sweeps"
        }
        "pca" => "first two principal components",
        "first-moments" => "mean of every unit",
        "second-moments" => "covariances of pairs of units",
        "spectrum-over-training" => "the twelve largest singular values along the run",
        "spectrum" => "all singular values of the trained machine",
        "hidden-activity" => "how active hidden units are on average",
        "hidden-activity-scatter" => "the same, unit by unit",
        _ => return name.replace('-', " "),
    };
    words.into()
}

fn layer(m: &harmonium::Member<f32>) -> String {
    let role = match m.role {
        Role::Visible => "visible",
        Role::Hidden => "hidden",
        Role::Condition => "given",
    };
    let units = if m.layer.len() == 1 { "unit" } else { "units" };
    format!("{} {role} {} {units}", m.layer.len(), m.layer.kind())
}

fn tiles(out: &mut String, model: &Model, evaluation: &Value) {
    let number = |v: &Value| v.as_f64().map(|x| format!("{x:.2}").replace('-', "−"));
    out.push_str("<div class=\"tiles\">");
    let mut tile = |value: String, name: String| {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{}</b><span>{}</span></div>",
            escape(&value),
            escape(&name)
        );
    };
    let ll = &evaluation["log_likelihood"];
    if let (Some(mean), Some(low), Some(high)) =
        (number(&ll["mean"]), number(&ll["lower"]), number(&ll["upper"]))
    {
        let data = evaluation["data"].as_str().unwrap_or("data");
        tile(mean, format!("{data} log-likelihood, nats per row ({low} to {high})"));
    }
    let signed = |v: &Value| v.as_f64().map(|x| format!("{x:+.2}").replace('-', "−"));
    if let (Some(gain), Some(floor), Some(err)) = (
        signed(&evaluation["gain"]["value"]),
        number(&evaluation["independent"]),
        evaluation["gain"]["std_err"].as_f64(),
    ) {
        tile(gain, format!("± {:.2} against independent columns ({floor})", 1.96 * err));
    }
    if let Some(z) = number(&evaluation["log_z"]["value"]) {
        tile(z, "ln Z".into());
    }
    if let Some(v) = evaluation["verdict"].as_str() {
        tile(v.into(), "verdict".into());
    }
    let parameters: usize = model.machine.parameters().arrays().map(|a| a.len()).sum();
    tile(grouped(parameters as u64), "parameters".into());
    out.push_str("</div>");
}

fn verdict(out: &mut String, evaluation: &Value) {
    let Some(word) = evaluation["verdict"].as_str() else { return };
    let (class, sentence) = match word {
        "exact" => ("", "The likelihood was enumerated: it is exact but for the choice of rows."),
        "converged" => (
            "",
            "The likelihood is reliable: estimates of ln Z from below and from above agree, and every check passed.",
        ),
        "diverged" => (" bad", "The likelihood is not a finite number: this model must not be used."),
        "worse than independent columns" => {
            (" bad", "This model must not be used: it is worse than a model of independent columns.")
        }
        _ => (
            " bad",
            "The likelihood is not reliable: at least one check failed. Longer annealing (`harmonium evaluate --time-budget`) may help.",
        ),
    };
    let _ =
        write!(out, "<div class=\"verdict{class}\"><b>{}</b>: {}<ul>", escape(word), prose(sentence));
    for reason in evaluation["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = write!(out, "<li>{}</li>", prose(reason));
    }
    out.push_str("</ul></div>");
}
