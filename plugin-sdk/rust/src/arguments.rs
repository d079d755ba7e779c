//! What profiles may configure.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use k8s_openapi::api::core::v1::Pod;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::outcomes::Profile;
use crate::schema::{close, problems};

/// One thing that is wrong with an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// Where, such as `scoringStrategy.type`.
    pub path: String,
    /// What is wrong.
    pub problem: String,
}

impl ArgumentError {
    /// An error at a path.
    pub fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        ArgumentError { path: path.into(), problem: problem.into() }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.problem)
    }
}

/// Takes over what profiles configure.
pub trait TakeArguments: Send + Sync {
    /// A JSON Schema (draft 2020-12) of the arguments.
    fn schema(&self) -> Option<Vec<u8>>;
    /// Takes over a profile's arguments. Every error reads "path: what is wrong".
    fn take(&self, profile: &Profile, arguments: Option<&[u8]>) -> Vec<String>;
    /// Forgets a profile.
    fn drop_profile(&self, profile: &str);
}

type Check<T> = dyn Fn(&Profile, &T) -> Vec<ArgumentError> + Send + Sync;

/// The arguments of each profile, as a type of the author's. Clones share them.
///
/// Doc comments describe the arguments, [`Default`] gives their defaults, and
/// attributes of serde and schemars say what may stand there:
///
/// ```
/// use berth_plugin_sdk::schemars::{self, JsonSchema};
/// use berth_plugin_sdk::Arguments;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Default, Deserialize, JsonSchema, Serialize)]
/// #[serde(default, rename_all = "camelCase")]
/// struct Settings {
///     /// How long to wait.
///     #[schemars(range(max = 3600))]
///     wait_seconds: u32,
/// }
///
/// let arguments = Arguments::<Settings>::new();
/// assert_eq!(0, arguments.of_profile("default-scheduler").wait_seconds);
/// ```
///
/// Unknown arguments, wrong types and values out of bounds are refused, all of them at once.
pub struct Arguments<T> {
    shared: Arc<Taken<T>>,
}

struct Taken<T> {
    defaults: Arc<T>,
    schema: LazyLock<Value>,
    check: Option<Box<Check<T>>>,
    by_profile: RwLock<HashMap<String, Arc<T>>>,
}

impl<T> Clone for Arguments<T> {
    fn clone(&self) -> Self {
        Arguments { shared: self.shared.clone() }
    }
}

impl<T: Default + DeserializeOwned + JsonSchema + Send + Sync + 'static> Default for Arguments<T> {
    fn default() -> Self {
        Arguments::made(None)
    }
}

impl<T: Default + DeserializeOwned + JsonSchema + Send + Sync + 'static> Arguments<T> {
    /// Arguments of a type, without further checks.
    #[must_use]
    pub fn new() -> Self {
        Arguments::default()
    }

    /// Arguments of a type with a further check, which sees only what has passed,
    /// before it counts; it may also take it over to where the plugin wants it.
    #[must_use]
    pub fn checked(check: impl Fn(&Profile, &T) -> Vec<ArgumentError> + Send + Sync + 'static) -> Self {
        Arguments::made(Some(Box::new(check)))
    }

    fn made(check: Option<Box<Check<T>>>) -> Self {
        let taken = Taken {
            defaults: Arc::new(T::default()),
            schema: LazyLock::new(schema_of::<T>),
            check,
            by_profile: RwLock::default(),
        };
        Arguments { shared: Arc::new(taken) }
    }

    /// A profile's arguments, the defaults if it has none.
    #[must_use]
    pub fn of_profile(&self, profile: &str) -> Arc<T> {
        let taken = self.shared.by_profile.read().unwrap_or_else(PoisonError::into_inner);
        taken.get(profile).unwrap_or(&self.shared.defaults).clone()
    }

    /// The arguments of the pod's profile: its scheduler's name.
    #[must_use]
    pub fn of(&self, pod: &Pod) -> Arc<T> {
        let name = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
        self.of_profile(name.unwrap_or("default-scheduler"))
    }

    fn taken(&self, profile: &Profile, given: Value) -> Result<T, Vec<String>> {
        let found = problems(&self.shared.schema, "", &given);
        if !found.is_empty() {
            return Err(found);
        }
        let taken = serde_json::from_value(given).map_err(|error| vec![format!("arguments: {error}")])?;
        let found = self.shared.check.as_ref().map(|check| check(profile, &taken)).unwrap_or_default();
        if found.is_empty() { Ok(taken) } else { Err(found.iter().map(ToString::to_string).collect()) }
    }
}

impl<T: Default + DeserializeOwned + JsonSchema + Send + Sync + 'static> TakeArguments for Arguments<T> {
    fn schema(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&*self.shared.schema).ok()
    }

    fn take(&self, profile: &Profile, arguments: Option<&[u8]>) -> Vec<String> {
        match parsed(arguments).and_then(|given| self.taken(profile, Value::Object(given))) {
            Ok(taken) => {
                let mut by_profile = self.shared.by_profile.write().unwrap_or_else(PoisonError::into_inner);
                by_profile.insert(profile.name.clone(), Arc::new(taken));
                Vec::new()
            }
            Err(problems) => problems,
        }
    }

    fn drop_profile(&self, profile: &str) {
        self.shared.by_profile.write().unwrap_or_else(PoisonError::into_inner).remove(profile);
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    close(&mut schema);
    schema
}

/// What a plugin without arguments has.
pub(crate) struct NoArguments;

impl TakeArguments for NoArguments {
    fn schema(&self) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, profile: &Profile, arguments: Option<&[u8]>) -> Vec<String> {
        match parsed(arguments) {
            Ok(given) => {
                given.keys().map(|name| format!("{name}: unknown argument of profile {}", profile.name)).collect()
            }
            Err(problems) => problems,
        }
    }

    fn drop_profile(&self, _profile: &str) {}
}

fn parsed(arguments: Option<&[u8]>) -> Result<Map<String, Value>, Vec<String>> {
    match arguments {
        None => Ok(Map::new()),
        Some(data) if data.trim_ascii().is_empty() => Ok(Map::new()),
        Some(data) => {
            serde_json::from_slice(data).map_err(|error| vec![format!("arguments: expected an object: {error}")])
        }
    }
}
