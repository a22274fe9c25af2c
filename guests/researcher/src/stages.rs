//! The stages of a task: plan, search, read, note, and again where something is open; then the
//! report. A stage is begun only if the turn has enough left to end with a report after it.

use crate::memory::{Doing, Research, Stage};
use crate::notes::{NOTES_MAX, Noted, Plan, Question};
use crate::prompts::Prompts;
use crate::report::{Draft, reasons, written};
use crate::session::{Begins, Desk};
use crate::sources::{
    HITS_MAX, PAGE_CHARS, Page, Place, Source, State, fetched, found_files, hits, one_line,
    read_blob, text,
};
use crate::task::Task;
use agent_host_sdk::{Effect, ModelRequest, Operation, Settlement};
use serde_json::{Value, json};

/// Sources of one task, those included that could not be read.
const SOURCES_MAX: usize = 64;
/// Sources that are read at the same time: the tool calls that the host performs at the same time.
const WAVE: usize = 8;
/// Times that a page may be said to be elsewhere.
const MOVES_MAX: u32 = 3;
/// Bytes of an address that a page was moved to.
const URL_BYTES_MAX: usize = 2_048;
/// Bytes of a question as progress shows it.
const SHOWN_BYTES_MAX: usize = 120;
/// Letters of a word that files are searched for.
const WORD_CHARS_MIN: usize = 3;
/// The reason that is told when no tool can be called any more.
const NO_CALLS: &str = "the tool calls of the turn were used up";

/// The end of a task: its report, or the reason that there is none.
pub(crate) type Ending = Result<String, String>;

/// A task in one step.
pub(crate) struct Stages<'w, 'a> {
    pub(crate) desk: &'w mut Desk<'a>,
    pub(crate) task: &'w Task,
    pub(crate) research: &'w mut Research,
}

impl<'w> Stages<'w, '_> {
    /// Takes in what has settled, and begins what comes next. None while operations are open.
    pub(crate) fn go_on(mut self, settled: &[&Settlement]) -> Option<Ending> {
        if self.research.stage == Stage::New
            && let Err(reason) = self.inspect()
        {
            return Some(Err(reason));
        }
        for settlement in settled {
            self.settle(settlement);
        }
        while self.research.open.is_empty() {
            match self.research.stage {
                Stage::New | Stage::Plan => self.plan(),
                Stage::Search => self.search(),
                Stage::Select => self.select(),
                Stage::Read => self.read(),
                Stage::Weigh => self.weigh(),
                Stage::Report => {
                    if let Some(ending) = self.report() {
                        return Some(ending);
                    }
                }
                Stage::Finish => return Some(Ok(self.finish())),
            }
        }
        None
    }

    /// Looks at a new task: what it names is listed, and what it lacks is told.
    fn inspect(&mut self) -> Result<(), String> {
        if self.task.web
            && let Some(tool) = ["web_search", "web_fetch"]
                .into_iter()
                .find(|tool| !self.desk.has(tool))
        {
            return Err(format!(
                "this researcher lacks the tool `{tool}`: add it to the agent's `toolAllowlist` \
                 and grant the component `web` what it may reach, or name `sources` that need no \
                 search of the web"
            ));
        }
        let can_find = self.desk.has("search_files");
        for place in &self.task.places {
            let mut source = Source::new(place.clone(), "", 0);
            if matches!(place, Place::Folder(_)) {
                if can_find {
                    continue;
                }
                source.fail("this researcher lacks the tool `search_files`");
            }
            self.research.sources.push(source);
        }
        self.research.stage = if self.searches() {
            Stage::Plan
        } else {
            self.research.questions = vec![Question::plain(self.task.question())];
            Stage::Read
        };
        Ok(())
    }

    /// Returns whether there is anything to search in.
    fn searches(&self) -> bool {
        self.task.web || !self.folders().is_empty()
    }

    /// The folders that the task names and a tool can search.
    fn folders(&self) -> Vec<String> {
        if !self.desk.has("search_files") {
            return Vec::new();
        }
        let places = self.task.places.iter();
        let folders = places.filter_map(|place| match place {
            Place::Folder(folder) => Some(folder.clone()),
            Place::Url(_) | Place::File(_) | Place::Blob(_) | Place::Text(_) => None,
        });
        folders.collect()
    }

    fn settle(&mut self, settlement: &Settlement) {
        let turn = self.desk.turn;
        let outcome = &settlement.outcome;
        match self.research.open.remove(&settlement.key) {
            Some(Doing::Plan) => self.take_plan(settlement),
            Some(Doing::Search) => match hits(turn, outcome) {
                Ok(hits) => {
                    self.research.searched_in_vain |= hits.is_empty();
                    for (hit, rank) in hits.into_iter().zip(1..) {
                        self.add(Source::new(Place::Url(hit.url), &hit.title, rank));
                    }
                }
                Err(reason) => self.trouble("A search failed", &reason),
            },
            Some(Doing::Find(folder)) => match found_files(turn, outcome, &folder) {
                Ok(files) => {
                    self.research.searched_in_vain |= files.is_empty();
                    for (file, rank) in files.into_iter().zip(1..) {
                        self.add(Source::new(Place::File(file), "", rank));
                    }
                }
                Err(reason) => self.trouble("A folder could not be searched", &reason),
            },
            Some(Doing::Read(at)) => {
                let source = self.research.sources.get(at);
                let is_page = source.is_some_and(|source| matches!(source.place, Place::Url(_)));
                let page = if is_page {
                    fetched(turn, outcome)
                } else {
                    text(turn, outcome).map(|text| Page::from_text(&text))
                };
                match page {
                    Ok(page) => self.take_page(at, page),
                    Err(reason) => self.fail(at, &reason),
                }
            }
            Some(Doing::Note(number)) => self.take_notes(number, settlement),
            Some(Doing::Report) => match settlement.reply::<Draft>() {
                Ok(draft) => self.research.draft = Some(draft),
                Err(reason) => self.trouble("No report could be drafted", &reason),
            },
            None => {}
        }
    }

    fn take_plan(&mut self, settlement: &Settlement) {
        self.research.questions = match settlement.reply::<Plan>() {
            Ok(plan) => plan.questions(self.desk.settings.questions, &self.research.searched),
            Err(reason) => {
                self.trouble("Questions could not be planned", &reason);
                Vec::new()
            }
        };
        // The query itself is always looked for on the web: a plan's words may be off. In a folder
        // its small words would find every line.
        let questions = &mut self.research.questions;
        if self.research.depth == 1 && (self.task.web || questions.is_empty()) {
            let plain = Question::plain(self.task.question());
            if !questions.iter().any(|planned| planned.is_like(&plain)) {
                questions.push(plain);
            }
        }
    }

    fn take_notes(&mut self, number: u32, settlement: &Settlement) {
        let Some(text) = self.research.texts.remove(&number) else {
            return self.research.remark(format!(
                "Source {number} was too long to be checked, together with the others; it has no \
                 notes."
            ));
        };
        match settlement.reply::<Noted>() {
            Ok(noted) => {
                let notes = noted.compared_with(number, &text);
                let room = NOTES_MAX.saturating_sub(self.research.notes.len());
                self.research.notes.extend(notes.into_iter().take(room));
            }
            Err(reason) => self.trouble(&format!("Source {number} could not be noted"), &reason),
        }
    }

    /// Adds a finding, unless it is known already.
    fn add(&mut self, source: Source) {
        let sources = &mut self.research.sources;
        let is_known = sources.iter().any(|known| known.place == source.place);
        if !is_known && sources.len() < SOURCES_MAX {
            sources.push(source);
        }
    }

    fn plan(&mut self) {
        let request = if self.research.depth == 1 {
            self.prompts().plan()
        } else {
            self.prompts().gaps(self.research)
        };
        let is_first = self.research.depth == 1;
        self.research.stage = Stage::Search;
        if self.ask(Begins::Plan, request, Doing::Plan) {
            return;
        }
        if is_first {
            self.research.questions = vec![Question::plain(self.task.question())];
        } else {
            self.research.stage = Stage::Report;
        }
    }

    fn search(&mut self) {
        if self.research.questions.is_empty() {
            self.research.stage = Stage::Report;
            return;
        }
        self.research.stage = Stage::Select;
        if let Some(why) = self.desk.budget.against(Begins::Search) {
            return self.cut_short(why);
        }
        let questions = self.research.questions.clone();
        let searches = questions.iter().map(|question| question.search.clone());
        self.research.searched.extend(searches);
        let asked: Vec<String> = questions
            .iter()
            .map(|question| one_line(&question.search, SHOWN_BYTES_MAX))
            .collect();
        self.desk.say(format!(
            "Round {}: searching for {}.",
            self.research.depth,
            asked.join("; ")
        ));
        for question in &questions {
            if self.task.web {
                let arguments = json!({ "query": question.search, "maxResults": HITS_MAX });
                self.call("web_search", arguments, Doing::Search);
            }
            let pattern = pattern(&question.search);
            let folders = if pattern.is_empty() {
                Vec::new()
            } else {
                self.folders()
            };
            for folder in folders {
                let arguments = json!({ "path": folder, "pattern": pattern, "recursive": true });
                self.call("search_files", arguments, Doing::Find(folder));
            }
        }
    }

    /// Keeps the findings that stand first in their searches, and forgets the others.
    fn select(&mut self) {
        self.research.stage = Stage::Read;
        let is_finding = |source: &Source| source.state == State::Waiting && source.rank > 0;
        let sources = &mut self.research.sources;
        let mut ranks: Vec<usize> = sources
            .iter()
            .filter(|source| is_finding(source))
            .map(|source| source.rank)
            .collect();
        ranks.sort_unstable();
        let pages = self.desk.settings.pages;
        let Some(last) = ranks.get(pages.saturating_sub(1)).copied() else {
            return;
        };
        // Of those with the same rank as the last, the first ones.
        let mut room = pages;
        room -= ranks.iter().filter(|rank| **rank < last).count();
        sources.retain(|source| {
            if !is_finding(source) || source.rank < last {
                return true;
            }
            let is_kept = source.rank == last && room > 0;
            room -= usize::from(is_kept);
            is_kept
        });
    }

    fn read(&mut self) {
        let sources = self.research.sources.iter().enumerate();
        let waiting: Vec<usize> = sources
            .filter(|(_, source)| source.state == State::Waiting)
            .map(|(at, _)| at)
            .collect();
        if waiting.is_empty() {
            self.research.stage = Stage::Weigh;
            return;
        }
        if let Some(why) = self.desk.budget.against(Begins::Read) {
            self.cut_short(why);
            for at in waiting {
                self.fail(at, why);
            }
            return;
        }
        for at in waiting.into_iter().take(WAVE) {
            self.read_one(at);
        }
    }

    fn read_one(&mut self, at: usize) {
        let Some(source) = self.research.sources.get_mut(at) else {
            return;
        };
        source.state = State::Reading;
        let doing = Doing::Read(at);
        let failed = match source.place.clone() {
            Place::Url(url) => {
                let arguments = json!({ "url": url, "maxChars": PAGE_CHARS });
                self.call("web_fetch", arguments, doing)
            }
            Place::File(path) => self.call("read_file", json!({ "path": path }), doing),
            Place::Blob(handle) => match read_blob(self.desk.turn, &handle) {
                Some(text) => return self.take_page(at, Page::from_text(&text)),
                None => Some(
                    "this session shows no text with this digest; upload it here, or give its \
                     text or address"
                        .to_owned(),
                ),
            },
            Place::Text(index) => {
                let written = self.task.written.get(index).map(String::as_str);
                return self.take_page(at, Page::from_text(written.unwrap_or_default()));
            }
            Place::Folder(_) => Some("it is a folder".to_owned()),
        };
        if let Some(reason) = failed {
            self.fail(at, &reason);
        }
    }

    /// Takes in what a source says, and has it noted.
    fn take_page(&mut self, at: usize, page: Page) {
        if let Some(target) = page.redirect {
            return self.follow(at, target);
        }
        if page.text.trim().is_empty() {
            return self.fail(at, "it has no text");
        }
        let number = u32::try_from(self.research.read() + 1).unwrap_or(u32::MAX);
        let Some(source) = self.research.sources.get_mut(at) else {
            return;
        };
        if let Some(title) = page.title.filter(|title| !title.trim().is_empty()) {
            source.title = Source::new(source.place.clone(), &title, 0).title;
        }
        source.is_cut = page.is_cut;
        source.state = State::Read(number);
        let request = self.prompts().note(self.research, number, &page.text);
        if self.ask(Begins::Note, request, Doing::Note(number)) {
            self.research.texts.insert(number, page.text);
        }
    }

    /// Looks for a source where it is said to be.
    fn follow(&mut self, at: usize, target: String) {
        let is_web = target.starts_with("http://") || target.starts_with("https://");
        let is_usable = is_web && target.len() <= URL_BYTES_MAX;
        let place = Place::Url(target);
        let shown = place.shown();
        let is_known = self
            .research
            .sources
            .iter()
            .any(|known| known.place == place);
        let Some(source) = self.research.sources.get_mut(at) else {
            return;
        };
        if is_usable && !is_known && source.moves < MOVES_MAX {
            source.place = place;
            source.moves += 1;
            source.state = State::Waiting;
        } else {
            source.fail(&format!("it is said to be at {shown} instead"));
        }
    }

    fn weigh(&mut self) {
        self.research.texts.clear();
        self.research.stage = if self.research.depth < self.task.depth_max && self.searches() {
            self.research.depth += 1;
            Stage::Plan
        } else {
            Stage::Report
        };
    }

    /// Asks for the report; ends the task when there is nothing to report on.
    fn report(&mut self) -> Option<Ending> {
        self.research.stage = Stage::Finish;
        let read = self.research.read();
        if read == 0 {
            return Some(Err(self.nothing_read()));
        }
        let notes = self.research.notes.len();
        if notes == 0 {
            self.research
                .remark("None of what was read could be noted as an answer to the query.");
            let draft = Draft::empty("Nothing was found");
            return Some(Ok(written(self.task, self.research, &draft)));
        }
        let request = self.prompts().report(self.research);
        if let Some(why) = self.desk.budget.against(Begins::Report) {
            self.cut_short(why);
        } else if !self.desk.budget.covers_report(&request) {
            self.cut_short("the tokens of the turn were nearly used up");
        } else {
            self.desk.say(format!(
                "Writing the report, from {notes} notes on {read} sources."
            ));
            self.open(Doing::Report, agent_host_sdk::Work::Model(request));
        }
        None
    }

    /// Returns why there is nothing to report on. What holds for several sources is told once.
    fn nothing_read(&self) -> String {
        let reasons = reasons(self.research);
        let is_new = |remark: &&String| {
            !reasons
                .iter()
                .any(|reported| remark.contains(&reported.words))
        };
        let remarks = self.research.remarks.iter().filter(is_new).cloned();
        let mut reported: Vec<String> = reasons
            .iter()
            .map(|reason| format!("{}: {}", reason.places.join(", "), reason.words))
            .collect();
        // Whatever came to nothing later, this is why there is nothing to read.
        let in_vain = self.research.searched_in_vain && self.research.sources.is_empty();
        if in_vain || (reported.is_empty() && self.research.remarks.is_empty()) {
            reported.push("no search found anything".to_owned());
        }
        reported.extend(remarks);
        format!("no source could be read: {}", reported.join("; "))
    }

    fn finish(&mut self) -> String {
        let draft = self.research.draft.take().unwrap_or_default();
        let mut draft = draft.compared_with(&self.research.sources);
        if draft.is_empty() {
            self.research
                .remark("There is no written report; these are the notes.");
            draft = Draft::from_notes(self.research).compared_with(&self.research.sources);
        }
        written(self.task, self.research, &draft)
    }

    fn prompts(&self) -> Prompts<'w> {
        // Messages that this step says come into the thread before its requests.
        let is_said = |effect: &&Effect| matches!(effect, Effect::Say(_));
        let said = self.desk.effects.iter().filter(is_said).count() as u64;
        Prompts {
            turn: self.desk.turn,
            settings: self.desk.settings,
            task: self.task,
            after: self.desk.turn.head().unwrap_or_default() + 1 + said,
        }
    }

    /// Asks a model something on the way to the report. Returns whether there is enough left.
    fn ask(&mut self, what: Begins, request: ModelRequest, doing: Doing) -> bool {
        let notes = self.research.notes.iter();
        let notes: usize = notes
            .map(|note| note.claim.len() + note.quote.len() + 16)
            .sum();
        let budget = &mut self.desk.budget;
        if let Some(why) = budget.against(what) {
            self.cut_short(why);
            return false;
        }
        if !budget.take_tokens(&request, notes) {
            self.cut_short("the tokens of the turn were nearly used up");
            return false;
        }
        self.open(doing, agent_host_sdk::Work::Model(request));
        true
    }

    /// Calls a tool. Returns the reason when it cannot.
    fn call(&mut self, tool: &str, arguments: Value, doing: Doing) -> Option<String> {
        if !self.desk.has(tool) {
            return Some(format!("this researcher lacks the tool `{tool}`"));
        }
        if !self.desk.budget.take_call() {
            self.cut_short(NO_CALLS);
            return Some(NO_CALLS.to_owned());
        }
        let work = Operation::tool("", tool, arguments).work;
        self.open(doing, work);
        None
    }

    fn open(&mut self, doing: Doing, work: agent_host_sdk::Work) {
        self.desk.operations += 1;
        let name = match doing {
            Doing::Plan => "plan",
            Doing::Search => "search",
            Doing::Find(_) => "find",
            Doing::Read(_) => "read",
            Doing::Note(_) => "note",
            Doing::Report => "report",
        };
        let key = format!("{name}-{}", self.desk.operations);
        self.research.open.insert(key.clone(), doing);
        self.desk.start.push(Operation { key, work });
    }

    fn fail(&mut self, at: usize, reason: &str) {
        if let Some(source) = self.research.sources.get_mut(at) {
            source.fail(reason);
        }
    }

    fn cut_short(&mut self, why: &str) {
        self.research
            .remark(format!("The research ended early: {why}."));
    }

    fn trouble(&mut self, what: &str, reason: &str) {
        self.research
            .remark(format!("{what}: {}.", one_line(reason, 300)));
    }
}

/// A regular expression for the lines that have one of these words; empty without words.
fn pattern(search: &str) -> String {
    let words = search.split(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = words
        .filter(|word| word.chars().count() >= WORD_CHARS_MIN)
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("(?i){}", words.join("|"))
    }
}
