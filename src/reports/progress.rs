//! What is seen while a session works: finished trials as lines, running ones as moving lines
//! below them on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::{bad, clean, count, dim, fit, good, say, seconds, thousands, warning_line};
use super::tables::{failure_text, skip_text};
use crate::journal::State;
use crate::model::{Judged, TrialId, TrialSpec};
use crate::search::{Outcome, Purpose};

/// What the search says of itself, in numbers that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outlook {
    /// Commits that can still be the answer.
    pub suspects: usize,
    /// Trials still expected with one slot: fewest and most.
    pub trials_left: (u32, u32),
}

/// Where a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Moving the worktree to the commit.
    Checkout,
    /// `--setup` runs.
    Setup,
    /// `--build` runs.
    Build,
    /// The repro runs.
    Run,
    /// It is being stopped.
    Stopping,
}

impl Stage {
    fn word(self) -> &'static str {
        match self {
            Self::Checkout => "checkout",
            Self::Setup => "setup",
            Self::Build => "build",
            Self::Run => "run",
            Self::Stopping => "stopping",
        }
    }
}

struct Line {
    spec: TrialSpec,
    stage: Stage,
    since: Instant,
    bar: ProgressBar,
}

/// Shows progress on standard error: with moving lines on a terminal, in plain lines elsewhere.
pub struct Progress {
    bars: MultiProgress,
    summary: ProgressBar,
    lines: BTreeMap<TrialId, Line>,
    fixed: bool,
    interactive: bool,
    total_suspects: usize,
}

impl Progress {
    /// A reporter for standard error.
    pub fn new(total_suspects: usize, fixed: bool) -> Self {
        let term = Term::stderr();
        // `dumb` cannot move the cursor, whatever it claims to be.
        let interactive = term.is_term() && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let bars = MultiProgress::with_draw_target(if interactive {
            ProgressDrawTarget::term(term, 8)
        } else {
            ProgressDrawTarget::hidden()
        });
        let summary = bars.add(ProgressBar::no_length());
        summary.set_style(line_style());
        Self {
            bars,
            summary,
            lines: BTreeMap::new(),
            fixed,
            interactive,
            total_suspects,
        }
    }

    fn columns() -> usize {
        Term::stderr()
            .size_checked()
            .map_or(100, |(_, w)| usize::from(w))
            .clamp(20, 160)
    }

    /// Prints a line above the moving ones.
    pub fn line(&self, text: &str) {
        if self.interactive {
            let text = fit(text, Self::columns().saturating_sub(1));
            // A terminal that has gone is no reason to stop the hunt.
            let _ = self.bars.println(text);
        } else {
            say(text);
        }
    }

    /// Prints a warning above the moving lines, whole.
    pub fn warn(&self, text: &str) {
        if self.interactive {
            let _ = self.bars.println(warning_line(text));
        } else {
            super::console::warn(text);
        }
    }

    /// A trial was given a slot.
    pub fn started(&mut self, spec: &TrialSpec) {
        let bar = self
            .bars
            .insert_before(&self.summary, ProgressBar::no_length());
        bar.set_style(line_style());
        self.lines.insert(
            spec.trial,
            Line {
                spec: spec.clone(),
                stage: Stage::Checkout,
                since: Instant::now(),
                bar,
            },
        );
        self.draw(spec.trial);
    }

    /// A trial moved on.
    pub fn stage(&mut self, trial: TrialId, stage: Stage) {
        if let Some(line) = self.lines.get_mut(&trial) {
            line.stage = stage;
            line.since = Instant::now();
        }
        self.draw(trial);
    }

    /// A trial no longer runs.
    pub fn ended(&mut self, trial: TrialId) {
        if let Some(line) = self.lines.remove(&trial) {
            line.bar.finish_and_clear();
            self.bars.remove(&line.bar);
        }
    }

    /// A trial was judged: one line for the record.
    pub fn judged(&self, state: &State, judged: &Judged, outlook: Outlook) {
        let Some(trial) = state.trials.get(&judged.trial) else {
            return;
        };
        let record = &trial.record;
        let verdict = match judged.outcome {
            Outcome::Good => good().apply_to("good".to_owned()),
            Outcome::Bad => bad().apply_to("bad".to_owned()),
            Outcome::Skip => dim().apply_to("skip".to_owned()),
        };
        let why = match judged.outcome {
            Outcome::Skip => skip_text(trial, judged.skip.as_ref()),
            Outcome::Bad => failure_text(record),
            Outcome::Good => String::new(),
        };
        // What matters most stands first: a narrow terminal cuts the end off.
        let mut text = format!(
            "{:>4} {:<10} {} {verdict} {}",
            format!("#{}", judged.trial),
            purpose(record.spec.purpose, state.plan.fixed),
            record.spec.commit.short(),
            seconds(record.prepare_seconds + record.run_seconds),
        );
        if outlook.suspects > 0 {
            let _ = write!(text, "; {} left", count(outlook.suspects, "suspect"));
        }
        if !why.is_empty() {
            let _ = write!(text, "; {}", clean(&why));
        }
        self.line(&text);
    }

    /// Draws the moving lines again, with the time estimate.
    pub fn tick(&mut self, state: &State, outlook: Outlook) {
        if !self.interactive {
            return;
        }
        let trials: Vec<TrialId> = self.lines.keys().copied().collect();
        for trial in trials {
            self.draw(trial);
        }
        let mut text = count(state.trials.len(), "trial");
        if outlook.suspects > 0 {
            let left = count(outlook.suspects, "suspect");
            let _ = write!(text, "; {left} of {}", thousands(self.total_suspects));
        }
        if let Some(left) = time_left(state, outlook) {
            let _ = write!(text, "; about {} to go", seconds(left));
        }
        self.summary
            .set_message(fit(&text, Self::columns().saturating_sub(1)));
    }

    /// Removes the moving lines, so that what follows stands below the record.
    pub fn close(&mut self) {
        let trials: Vec<TrialId> = self.lines.keys().copied().collect();
        for trial in trials {
            self.ended(trial);
        }
        self.summary.finish_and_clear();
    }

    fn draw(&self, trial: TrialId) {
        let (true, Some(line)) = (self.interactive, self.lines.get(&trial)) else {
            return;
        };
        let for_so_long = match line.since.elapsed().as_secs() {
            // Tenths would stand still.
            n @ 0..10 => format!("{n}s"),
            n => seconds(n as f64),
        };
        let text = format!(
            "{:>4} {:<10} {} {} {}",
            format!("#{trial}"),
            purpose(line.spec.purpose, self.fixed),
            line.spec.commit.short(),
            line.stage.word(),
            for_so_long,
        );
        line.bar
            .set_message(fit(&text, Self::columns().saturating_sub(1)));
    }
}

fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Seconds still to go: the median of what trials cost so far, times those that are expected,
/// over the slots. `None` before two trials have ended.
pub fn time_left(state: &State, outlook: Outlook) -> Option<f64> {
    let mut costs: Vec<f64> = state
        .trials
        .values()
        .map(|t| t.record.prepare_seconds + t.record.run_seconds)
        .collect();
    if costs.len() < 2 || outlook.trials_left.1 == 0 {
        return None;
    }
    costs.sort_by(f64::total_cmp);
    let median = costs.get(costs.len() / 2).copied()?;
    let trials = f64::from(outlook.trials_left.0 + outlook.trials_left.1) / 2.0;
    Some(median * (trials / state.plan.jobs.max(1) as f64).ceil())
}

/// A purpose in words.
pub fn purpose(purpose: Purpose, fixed: bool) -> &'static str {
    match (purpose, fixed) {
        (Purpose::BadEnd, false) | (Purpose::GoodEnd, true) => "bad end",
        (Purpose::GoodEnd, false) | (Purpose::BadEnd, true) => "good end",
        (Purpose::MergeBase, _) => "merge base",
        (Purpose::Narrow, _) => "search",
        (Purpose::Confirm, _) => "confirm",
    }
}
