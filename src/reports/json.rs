//! The JSON report, version 1: a public format (docs/json.md), apart from internal types.

use serde::Serialize;

use super::Report;
use super::tables::{Tested, tested};
use crate::model::{CommitId, Conclusion, Doubt, Plan};

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    tool: &'static str,
    tool_version: &'static str,
    kind: &'static str,
    session: &'a str,
    status: &'static str,
    message: String,
    first_bad: Option<&'a str>,
    first_fixed: Option<&'a str>,
    suspects: Vec<&'a str>,
    confidence: Option<f64>,
    trials: usize,
    seconds: f64,
    candidates: usize,
    good: Vec<&'a str>,
    bad: &'a str,
    seed: u64,
    command: &'a [String],
    culprit: Option<Culprit<'a>>,
    conflicts: Vec<[&'a str; 2]>,
    doubts: Vec<String>,
    warnings: &'a [String],
    tested: Vec<Tested>,
}

#[derive(Serialize)]
struct Culprit<'a> {
    commit: &'a str,
    author_date: &'a str,
    subject: &'a str,
    parents: Vec<&'a str>,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    status: char,
    path: std::borrow::Cow<'a, str>,
}

/// The document, one line. The session must have concluded or been interrupted.
///
/// # Errors
/// When it cannot be encoded.
pub fn document(report: &Report<'_>) -> serde_json::Result<String> {
    let state = report.state;
    let plan = &state.plan;
    let conclusion = state.conclusion.as_ref();
    let named = match conclusion {
        Some(Conclusion::Found { commit, .. }) => Some(commit.as_str()),
        _ => None,
    };
    let document = Document {
        version: 1,
        tool: "fbisect",
        tool_version: env!("CARGO_PKG_VERSION"),
        kind: "commits",
        session: &state.session.0,
        status: conclusion.map_or("interrupted", status),
        message: super::text::headline(state),
        first_bad: named.filter(|_| !plan.fixed),
        first_fixed: named.filter(|_| plan.fixed),
        suspects: suspects(conclusion),
        confidence: None,
        trials: state.trials.len(),
        seconds: state.elapsed_seconds,
        candidates: state.candidates,
        good: plan.good.iter().map(|(_, id)| id.as_str()).collect(),
        bad: plan.bad.1.as_str(),
        seed: plan.seed,
        command: &plan.command.argv,
        culprit: report.culprit.as_ref().map(|c| Culprit {
            commit: c.id.as_str(),
            author_date: &c.author_date,
            subject: &c.subject,
            parents: c.parents.iter().map(CommitId::as_str).collect(),
            files: (c.files.iter())
                .map(|(status, path)| File {
                    status: *status,
                    path: path.to_string_lossy(),
                })
                .collect(),
        }),
        conflicts: match conclusion {
            Some(Conclusion::Contradictory { conflicts, .. }) => (conflicts.iter())
                .map(|(upper, lower)| [upper.as_str(), lower.as_str()])
                .collect(),
            _ => Vec::new(),
        },
        doubts: doubts(conclusion).iter().map(super::text::doubt).collect(),
        warnings: &report.warnings,
        tested: tested(state),
    };
    serde_json::to_string(&document)
}

/// The document of a request whose range holds no candidate: there is no session.
///
/// # Errors
/// When it cannot be encoded.
pub fn empty_range(plan: &Plan, message: &str) -> serde_json::Result<String> {
    serde_json::to_string(&Document {
        version: 1,
        tool: "fbisect",
        tool_version: env!("CARGO_PKG_VERSION"),
        kind: "commits",
        session: "",
        status: "empty_range",
        message: message.to_owned(),
        first_bad: None,
        first_fixed: None,
        suspects: Vec::new(),
        confidence: None,
        trials: 0,
        seconds: 0.0,
        candidates: 0,
        good: plan.good.iter().map(|(_, id)| id.as_str()).collect(),
        bad: plan.bad.1.as_str(),
        seed: plan.seed,
        command: &plan.command.argv,
        culprit: None,
        conflicts: Vec::new(),
        doubts: Vec::new(),
        warnings: &[],
        tested: Vec::new(),
    })
}

/// The document's `status` word.
pub fn status(conclusion: &Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Found { .. } => "found",
        Conclusion::Suspects { .. } => "suspects",
        Conclusion::Contradictory { .. } => "contradictory",
        Conclusion::BadEndPassed { .. } => "bad_end_passed",
        Conclusion::GoodEndFailed { .. } => "good_end_failed",
        Conclusion::MergeBaseFailed { .. } => "merge_base_failed",
        Conclusion::EndUntestable { .. } => "end_untestable",
        Conclusion::BudgetSpent { .. } => "budget_spent",
        Conclusion::EmptyRange => "empty_range",
    }
}

fn suspects(conclusion: Option<&Conclusion>) -> Vec<&str> {
    match conclusion {
        Some(Conclusion::Suspects { commits, .. } | Conclusion::BudgetSpent { commits }) => {
            commits.iter().map(CommitId::as_str).collect()
        }
        Some(Conclusion::Contradictory {
            suspect: Some(suspect),
            ..
        }) => vec![suspect.as_str()],
        _ => Vec::new(),
    }
}

/// The doubts of a conclusion that has some.
pub fn doubts(conclusion: Option<&Conclusion>) -> &[Doubt] {
    match conclusion {
        Some(Conclusion::Found { doubts, .. } | Conclusion::Suspects { doubts, .. }) => doubts,
        _ => &[],
    }
}
