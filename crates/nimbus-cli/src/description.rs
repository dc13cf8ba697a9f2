//! One object on one page, for people.

use nimbus_wire::v1::{self, ConditionState};
use prost::{Message as _, Name as _};
use serde_json::Value;

use crate::{
    age::age,
    failure::Failure,
    manifest::Manifest,
    object_table::{audience, key_name, labels},
    output::{Cell, Column, Printer, Table, Tone},
    propagation_report,
    schemas::kind_of,
};

/// Everything that is known of an object.
pub(crate) struct Description {
    pub(crate) object: v1::Object,
    /// The same with a readable spec and no secrets.
    pub(crate) manifest: Manifest,
    /// What it refers to, and whether that exists.
    pub(crate) refs: Vec<(v1::Reference, Existence)>,
    pub(crate) owner: Option<(v1::Owner, Existence)>,
    pub(crate) relatives: Relatives,
    /// How far its first children have come.
    pub(crate) children: Vec<v1::Propagation>,
    pub(crate) propagation: v1::Propagation,
    /// Agents that do not have it as they should, with what happened there.
    pub(crate) agents: Vec<v1::AgentInfo>,
}

/// Objects that point to this one.
#[derive(Debug, Default)]
pub(crate) struct Relatives {
    /// Those that exist on its behalf.
    pub(crate) children: Vec<v1::Key>,
    /// Those that refer to it.
    pub(crate) referrers: Vec<String>,
    /// Not all objects were looked at.
    pub(crate) looked_at: Option<usize>,
}

/// Whether an object that is named exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existence {
    Exists,
    Missing,
    /// Under this name there is another one.
    Replaced,
}

/// Width of the names of fields.
const FIELD: usize = 14;

// === impl Description ===

impl Description {
    /// Prints the page.
    pub(crate) fn print(&self, printer: &mut Printer) -> Result<(), Failure> {
        self.metadata(printer)?;
        self.relations(printer)?;
        self.standing(printer)?;
        match (&self.manifest.spec, &self.manifest.spec_bytes) {
            (Some(spec), _) => yaml(printer, "Spec", spec)?,
            (None, Some(_)) => {
                section(printer, "Spec")?;
                printer.line("  not readable: nobody has registered the kind")?;
            }
            (None, None) => {}
        }
        self.children(printer)?;
        self.propagation(printer)?;
        self.events(printer)
    }

    fn metadata(&self, printer: &mut Printer) -> Result<(), Failure> {
        let object = &self.object;
        field(printer, "Kind", &object.kind)?;
        if !object.namespace.is_empty() {
            field(printer, "Namespace", &object.namespace)?;
        }
        field(printer, "Name", &object.name)?;
        field(printer, "Uid", &object.uid)?;
        field(printer, "Generation", &object.generation.to_string())?;
        field(printer, "Revision", &object.revision.to_string())?;
        field(printer, "Manager", &object.manager)?;
        field(printer, "Audience", &audience(object.audience.as_ref()))?;
        field(printer, "Labels", &labels(&object.labels))?;
        for (at, (key, value)) in object.annotations.iter().enumerate() {
            field(printer, if at == 0 { "Annotations" } else { "" }, &format!("{key}={value}"))?;
        }
        if !object.finalizers.is_empty() {
            field(printer, "Finalizers", &object.finalizers.join(", "))?;
        }
        if object.deleting {
            field(printer, "Deleting", "yes, as soon as the last finalizer is done")?;
        }
        Ok(())
    }

    fn relations(&self, printer: &mut Printer) -> Result<(), Failure> {
        if let Some((owner, existence)) = &self.owner {
            let v1::Owner { kind, namespace, name, .. } = owner.clone();
            field(printer, "Owner", &existence.of(&key_name(&v1::Key { kind, namespace, name })))?;
        }
        for (at, (reference, existence)) in self.refs.iter().enumerate() {
            let v1::Reference { kind, namespace, name, weak, declared } = reference.clone();
            let how = match (weak, declared) {
                (false, false) => "",
                (true, false) => " (weak)",
                (false, true) => " (by its spec)",
                (true, true) => " (weak, by its spec)",
            };
            let name = format!("{}{how}", key_name(&v1::Key { kind, namespace, name }));
            field(printer, if at == 0 { "Needs" } else { "" }, &existence.of(&name))?;
        }
        let Relatives { referrers, looked_at, .. } = &self.relatives;
        for (at, name) in referrers.iter().enumerate() {
            field(printer, if at == 0 { "Needed by" } else { "" }, name)?;
        }
        if let Some(count) = looked_at {
            field(printer, "Incomplete", &format!("only {count} objects were looked at for what points to this one"))?;
        }
        Ok(())
    }

    /// What its controller says.
    fn standing(&self, printer: &mut Printer) -> Result<(), Failure> {
        let (Some(status), Some(shown)) = (&self.object.status, &self.manifest.status) else { return Ok(()) };
        let standing =
            if kind_of(status) == v1::Standing::full_name() { v1::Standing::decode(&*status.value).ok() } else { None };
        let Some(standing) = standing else { return yaml(printer, "Status", shown) };
        section(printer, "Conditions")?;
        let mut table = Table::new(["TYPE", "STATE", "CODE", "GENERATION", "MESSAGE"].map(Column::new));
        for condition in &standing.conditions {
            let (state, tone) = match condition.state() {
                ConditionState::True => ("true", Tone::Good),
                ConditionState::False => ("false", Tone::Bad),
                ConditionState::Unspecified => ("unknown", Tone::Warning),
            };
            table.row([
                Cell::from(&condition.r#type),
                Cell::from(state).tone(tone),
                Cell::from(&condition.code),
                Cell::from(condition.generation),
                Cell::from(&condition.message),
            ]);
        }
        printer.table(&table)?;
        match shown.get("detail") {
            Some(detail) => yaml(printer, "Status", detail),
            None => Ok(()),
        }
    }

    /// What it has become, and how far that has come.
    fn children(&self, printer: &mut Printer) -> Result<(), Failure> {
        let all = &self.relatives.children;
        if all.is_empty() {
            return Ok(());
        }
        section(printer, "Children")?;
        let mut table = Table::new(["NAME", "AGENTS", "APPLIED", "FAILED", "PENDING"].map(Column::new));
        for (child, propagation) in all.iter().zip(&self.children) {
            let v1::Propagation { agents, applied, failed, pending, .. } = *propagation;
            let troubled = |count: u32, tone| Cell::from(count).tone(if count > 0 { tone } else { Tone::Plain });
            table.row([
                Cell::from(key_name(child)),
                Cell::from(agents),
                Cell::from(applied).tone(if applied == agents { Tone::Good } else { Tone::Plain }),
                troubled(failed, Tone::Bad),
                troubled(pending, Tone::Warning),
            ]);
        }
        printer.table(&table)?;
        match all.len() - self.children.len() {
            0 => Ok(()),
            more => printer.line(&format!("and {more} more")),
        }
    }

    fn propagation(&self, printer: &mut Printer) -> Result<(), Failure> {
        section(printer, "Propagation")?;
        if propagation_report::concerns_nobody(&self.propagation) {
            return printer.line("  no agent has subscribed to it");
        }
        printer.table(&propagation_report::counts(&self.propagation))?;
        let laggards = propagation_report::laggards(&self.propagation);
        if !laggards.is_empty() {
            section(printer, "Agents that do not have it as they should")?;
            printer.table(&propagation_report::table(&laggards))?;
            let more = (propagation_report::count(&self.propagation) as usize).saturating_sub(laggards.len());
            if more > 0 {
                printer.line(&format!("and {more} more (hint: `nimbus propagation` names more of them)"))?;
            }
        }
        Ok(())
    }

    /// What happened to it at these agents.
    fn events(&self, printer: &mut Printer) -> Result<(), Failure> {
        let v1::Object { kind, namespace, name, .. } = self.object.clone();
        let key = v1::Key { kind, namespace, name };
        let mut table = Table::new(["AGENT", "REASON", "COUNT", "LAST", "MESSAGE"].map(Column::new));
        let mut any = false;
        for agent in &self.agents {
            for event in agent.events.iter().filter(|event| event.object.as_ref() == Some(&key)) {
                any = true;
                table.row([
                    Cell::from(&agent.agent),
                    Cell::from(&event.reason),
                    Cell::from(event.count),
                    Cell::from(format!("{} ago", age(event.last_ms))),
                    Cell::from(&event.message),
                ]);
            }
        }
        if any {
            section(printer, "Events")?;
            printer.table(&table)?;
        }
        Ok(())
    }
}

// === impl Existence ===

impl Existence {
    fn of(self, name: &str) -> String {
        match self {
            Self::Exists => name.to_owned(),
            Self::Missing => format!("{name}   does not exist"),
            Self::Replaced => format!("{name}   does not exist any more: another one has its name"),
        }
    }
}

/// A field; what others have written must not move the cursor.
fn field(printer: &mut Printer, name: &str, value: &str) -> Result<(), Failure> {
    let value = if value.is_empty() { "-" } else { value };
    let value: String = value
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    printer.line(&format!("{name:<FIELD$}{value}"))
}

fn section(printer: &mut Printer, title: &str) -> Result<(), Failure> {
    printer.line("")?;
    printer.line(title)
}

fn yaml(printer: &mut Printer, title: &str, value: &Value) -> Result<(), Failure> {
    section(printer, title)?;
    printer.yaml_part(value)
}
