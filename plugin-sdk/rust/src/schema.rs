//! A JSON Schema of arguments, and all that is wrong with some, path by path.

use serde_json::{Map, Value};

/// Refuses properties that an object's schema does not name, in the whole schema.
pub(crate) fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") {
                fields.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Everything that is wrong with a value, each as "path: what is wrong".
pub(crate) fn problems(schema: &Value, path: &str, value: &Value) -> Vec<String> {
    let Value::Object(schema) = schema else { return Vec::new() };
    let alternatives = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let tried: Vec<_> = alternatives.map(|each| problems(each, path, value)).collect();
    if !tried.is_empty() && tried.iter().all(|found| !found.is_empty()) {
        // The alternative that came nearest: its problems lie deepest.
        let deepest = tried.into_iter().max_by_key(|found| found.first().map_or(0, String::len));
        return deepest.unwrap_or_default();
    }
    if !has_type(schema, value) {
        let wanted = texts(schema.get("type")).join(" or ");
        return vec![format!("{}: expected {wanted}, got {value}", or_arguments(path))];
    }
    match value {
        Value::Object(given) => object_problems(schema, path, given),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let inner = schema.get("items").unwrap_or(&Value::Null);
            items.flat_map(|(index, item)| problems(inner, &format!("{path}[{index}]"), item)).collect()
        }
        _ => scalar_problem(schema, path, value).into_iter().collect(),
    }
}

fn has_type(schema: &Map<String, Value>, value: &Value) -> bool {
    let allowed = texts(schema.get("type"));
    allowed.is_empty()
        || allowed.iter().any(|name| match *name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "object" => value.is_object(),
            "array" => value.is_array(),
            _ => true,
        })
}

fn object_problems(schema: &Map<String, Value>, path: &str, given: &Map<String, Value>) -> Vec<String> {
    let known = schema.get("properties").and_then(Value::as_object);
    let further = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
    let mut found: Vec<String> = texts(schema.get("required"))
        .into_iter()
        .filter(|name| !given.contains_key(*name))
        .map(|name| format!("{}: missing", join(path, name)))
        .collect();
    for (name, value) in given {
        let path = join(path, name);
        match known.and_then(|known| known.get(name)) {
            Some(inner) => found.extend(problems(inner, &path, value)),
            None if *further == Value::Bool(false) => found.push(format!("{path}: unknown argument")),
            None => found.extend(problems(further, &path, value)),
        }
    }
    found
}

fn scalar_problem(schema: &Map<String, Value>, path: &str, value: &Value) -> Option<String> {
    let number = |key| schema.get(key).and_then(Value::as_f64);
    let given = value.as_f64();
    let path = or_arguments(path);
    if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
        return Some(format!("{path}: {value} is not {constant}"));
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array)
        && !choices.contains(value)
    {
        return Some(format!("{path}: {value} is none of {}", texts(schema.get("enum")).join(", ")));
    }
    match (given, number("minimum"), number("maximum")) {
        (Some(given), Some(least), _) if given < least => Some(format!("{path}: {value} is less than {least}")),
        (Some(given), _, Some(most)) if given > most => Some(format!("{path}: {value} is more than {most}")),
        _ => None,
    }
}

/// The texts of a value that is one or a list of them.
fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

fn or_arguments(path: &str) -> &str {
    if path.is_empty() { "arguments" } else { path }
}
