//! The measurements, against their bars, as a table or as lines of JSON.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the report is what this program is for"
)]

use crate::measure::Pair;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// The bar that a measurement has to meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// Ours is at most so many times the peer.
    Within(f64),
    /// The same, and so much more in the row's unit.
    WithinPlus(f64, f64),
    /// Ours is at least this share of the peer.
    AtLeast(f64),
    /// The peer takes at least so many times as long as ours.
    Faster(f64),
    /// Ours is at most this, without regard to the peer.
    AtMost(f64),
    /// No bar: the row is reported beside the one that it belongs to.
    Reported,
}

impl Bar {
    fn ratio(self, Pair { ours, peer }: Pair) -> f64 {
        match self {
            Self::Faster(_) => peer / ours,
            Self::Within(_)
            | Self::WithinPlus(..)
            | Self::AtLeast(_)
            | Self::AtMost(_)
            | Self::Reported => ours / peer,
        }
    }

    fn is_met(self, pair: Pair) -> bool {
        let Pair { ours, peer } = pair;
        match self {
            Self::Within(most) => self.ratio(pair) <= most,
            Self::WithinPlus(most, plus) => ours <= most * peer + plus,
            Self::AtLeast(least) | Self::Faster(least) => self.ratio(pair) >= least,
            Self::AtMost(most) => ours <= most,
            Self::Reported => true,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(most) => write!(f, "≤ {most}×"),
            Self::WithinPlus(most, plus) => write!(f, "≤ {most}× + {plus}"),
            Self::AtLeast(least) => write!(f, "≥ {least}×"),
            Self::Faster(least) => write!(f, "{least}× faster"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Reported => f.write_str("-"),
        }
    }
}

/// One measurement.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    ours: f64,
    peer: f64,
    unit: &'static str,
    /// None where a difference has no ratio.
    ratio: Option<f64>,
    bar: String,
    verdict: Cow<'static, str>,
}

impl Row {
    /// A measurement in some unit, against its bar.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, pair: Pair, bar: Bar) -> Self {
        let verdict = match bar {
            Bar::Reported => "-",
            _ if bar.is_met(pair) => "met",
            _ => "MISSED",
        };
        Self {
            name: name.into(),
            ours: pair.ours,
            peer: pair.peer,
            unit,
            ratio: Some(bar.ratio(pair)),
            bar: bar.to_string(),
            verdict: verdict.into(),
        }
    }

    /// The row of two figures from each of which something was subtracted. If nothing is left of
    /// one, it meets no bar and misses none.
    pub(crate) fn of_differences(self, subtracted: &str) -> Self {
        let lost = if self.ours <= 0.0 {
            "ours"
        } else if self.peer <= 0.0 {
            "the peer"
        } else {
            return self;
        };
        Self {
            ratio: None,
            verdict: format!("could not be told apart: {lost} from {subtracted}").into(),
            ..self
        }
    }
}

/// The circumstances of the measurements.
#[derive(Debug, Serialize)]
pub(crate) struct Circumstances {
    /// Raw `fdatasync` calls per second, now.
    pub(crate) fdatasync_per_s: f64,
    /// `burst` or `throttled`: what the disk does now.
    pub(crate) disk: &'static str,
    /// The system's load averages.
    pub(crate) load: String,
    /// The build profile of the program.
    pub(crate) profile: &'static str,
}

/// The form of the report.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// A table for people.
    Table,
    /// A JSON object a line.
    Json,
}

/// Another run, whose figures are told beside those of this one.
#[derive(Debug)]
pub(crate) struct OtherRun {
    /// The name of its program's build profile.
    profile: String,
    /// Its figures, by the names of their rows.
    ours: HashMap<String, f64>,
}

impl OtherRun {
    /// Reads what another run has reported in lines of JSON.
    pub(crate) fn read(report: &str) -> anyhow::Result<Self> {
        let mut beside = Self {
            profile: String::new(),
            ours: HashMap::new(),
        };
        for line in report.lines() {
            let line: Value = serde_json::from_str(line)?;
            let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
            if let Some(profile) = text("profile") {
                let name = profile.split_whitespace().next();
                beside.profile = name.unwrap_or_default().to_owned();
            } else if let (Some(name), Some(ours)) =
                (text("name"), line.get("ours").and_then(Value::as_f64))
            {
                beside.ours.insert(name, ours);
            }
        }
        Ok(beside)
    }
}

/// A row as a line of JSON.
#[derive(Serialize)]
struct ReportLine<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// The figure of the other run.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<f64>,
}

/// The report, which is written line by line as it is made.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) form: Form,
    pub(crate) beside: Option<OtherRun>,
}

impl Report {
    /// Writes the header above the rows.
    pub(crate) fn open(&self, circumstances: &Circumstances) {
        let Circumstances {
            fdatasync_per_s,
            disk,
            load,
            profile,
        } = circumstances;
        match self.form {
            Form::Table => {
                println!(
                    "disk {disk}: {fdatasync_per_s:.0} fdatasync/s; load {load}; profile \
                          {profile}\n"
                );
                println!("{}", self.heading());
            }
            Form::Json => print_json(circumstances),
        }
    }

    /// One row.
    pub(crate) fn row(&self, row: &Row) {
        match self.form {
            Form::Table => println!("{}", self.line(row)),
            Form::Json => print_json(&ReportLine {
                row,
                beside: self.figure_beside(row),
            }),
        }
    }

    fn heading(&self) -> String {
        let beside = self.column(|other| other.profile.clone());
        format!(
            "{:<44} {:>10} {beside}{:>10} {:<9} {:>8}  {:<12} verdict",
            "what", "ours", "peer", "unit", "ratio", "bar"
        )
    }

    fn line(&self, row: &Row) -> String {
        let Row {
            name,
            ours,
            peer,
            unit,
            ratio,
            bar,
            verdict,
        } = row;
        let beside = self.column(|_| {
            self.figure_beside(row)
                .map_or_else(|| "-".to_owned(), number)
        });
        let ours = number(*ours);
        let peer = number(*peer);
        let ratio = ratio.map_or_else(|| "-".to_owned(), number);
        format!(
            "{name:<44} {ours:>10} {beside}{peer:>10} {unit:<9} {ratio:>8}  {bar:<12} {verdict}"
        )
    }

    /// Returns the cell of the other run; nothing where there is none.
    fn column(&self, cell: impl Fn(&OtherRun) -> String) -> String {
        let other = self.beside.as_ref();
        other.map_or_else(String::new, |other| format!("{:>10} ", cell(other)))
    }

    fn figure_beside(&self, row: &Row) -> Option<f64> {
        self.beside.as_ref()?.ours.get(&row.name).copied()
    }

    /// A benchmark that had no result.
    pub(crate) fn failed(&self, name: &str, error: &anyhow::Error) {
        eprintln!("bench: {name} came to no result: {error:#}");
    }
}

/// A line for the process that has started this one.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Numbers for the process that has started this one.
pub(crate) fn answer(numbers: &[f64]) {
    print_json(&numbers);
}

fn print_json(value: &impl Serialize) {
    println!("{}", serde_json::to_string(value).unwrap_or_default());
}

/// Three digits that matter, or all before the point.
fn number(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::{Bar, Form, OtherRun, Pair, Report, Row};

    #[test]
    fn a_bar_is_met_from_its_own_side() {
        let pair = Pair {
            ours: 2.0,
            peer: 1.0,
        };
        for (bar, met) in [
            (Bar::Within(2.0), true),
            (Bar::Within(1.9), false),
            (Bar::WithinPlus(1.1, 1.0), true),
            (Bar::WithinPlus(1.1, 0.5), false),
            (Bar::AtLeast(0.85), true),
            (Bar::AtLeast(2.5), false),
            (Bar::Faster(0.5), true),
            (Bar::Faster(2.0), false),
            (Bar::AtMost(2.0), true),
            (Bar::AtMost(1.0), false),
        ] {
            assert_eq!(bar.is_met(pair), met, "{bar}");
        }
    }

    #[test]
    fn a_difference_of_which_nothing_is_left_meets_no_bar_and_misses_none() {
        let row = |ours, peer| {
            let pair = Pair { ours, peer };
            Row::new("event", "µs", pair, Bar::Within(1.2)).of_differences("an empty one")
        };
        assert_eq!(row(2.0, 2.0).verdict, "met");
        assert_eq!(row(3.0, 2.0).verdict, "MISSED");
        for (ours, peer, lost) in [(0.0, 2.0, "ours"), (2.0, -1.0, "the peer")] {
            let row = row(ours, peer);
            let verdict = format!("could not be told apart: {lost} from an empty one");
            assert_eq!(row.verdict, verdict);
            assert_eq!(row.ratio, None);
        }
    }

    #[test]
    fn another_run_is_told_beside_this_one() {
        let other = concat!(
            r#"{"fdatasync_per_s":1.0,"disk":"burst","load":"0","profile":"dev (opt-level 1)"}"#,
            "\n",
            r#"{"name":"turn","ours":7.5,"peer":1.0,"unit":"ms","ratio":7.5,"bar":"-"}"#,
            "\n"
        );
        let report = Report {
            form: Form::Table,
            beside: Some(OtherRun::read(other).unwrap()),
        };
        let pair = Pair {
            ours: 2.5,
            peer: 1.0,
        };
        let line = |name: &str| report.line(&Row::new(name, "ms", pair, Bar::Reported));
        let columns = |line: &str| -> Vec<String> {
            let columns = line.split_whitespace().take(4);
            columns.map(str::to_owned).collect()
        };
        assert_eq!(columns(&report.heading()), ["what", "ours", "dev", "peer"]);
        assert_eq!(columns(&line("turn")), ["turn", "2.50", "7.50", "1.00"]);
        assert_eq!(columns(&line("load")), ["load", "2.50", "-", "1.00"]);
        let alone = Report {
            form: Form::Table,
            beside: None,
        };
        assert_eq!(columns(&alone.heading()), ["what", "ours", "peer", "unit"]);
        assert!(OtherRun::read("a table").is_err());
    }
}
