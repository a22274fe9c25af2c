//! A tool with a host and a folder: it fetches the temperature of a place from Open-Meteo and adds
//! a line to a diary.

use agent_host_sdk::http::Request;
use agent_host_sdk::{CallContext, Json, Tool, ToolError, Tools, export_tools, folder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

/// Bytes of an answer: a real one has about 400.
const ANSWER_BYTES_MAX: usize = 16 << 10;
/// The time that the server has.
const PATIENCE: Duration = Duration::from_secs(10);

/// The tool component.
#[derive(Debug)]
pub struct Weather;

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    /// Degrees north, such as 52.52 for Berlin.
    #[schemars(range(min = -90, max = 90))]
    latitude: f64,
    /// Degrees east, such as 13.41 for Berlin.
    #[schemars(range(min = -180, max = 180))]
    longitude: f64,
}

/// An answer of the server, as far as it is read.
#[derive(Debug, Deserialize)]
struct Forecast {
    current: Current,
}

/// The result of the tool.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Current {
    /// The time of the measurement, in UTC.
    time: String,
    /// The temperature in degrees Celsius.
    #[serde(rename = "temperature_2m")]
    celsius: f64,
}

impl Tools for Weather {
    fn tools(&self) -> Vec<Tool> {
        vec![
            Tool::new(
                "note_weather",
                "Looks up the temperature of a place and adds it to the weather diary.",
                note_weather,
            )
            .needs("net.http")
            .needs("files.write"),
        ]
    }
}

fn note_weather(
    _: &CallContext,
    Place {
        latitude,
        longitude,
    }: Place,
) -> Result<Json<Current>, ToolError> {
    let Forecast { current } = Request::get("https://api.open-meteo.com/v1/forecast")
        .query("latitude", latitude.to_string())
        .query("longitude", longitude.to_string())
        .query("current", "temperature_2m")
        .timeout(PATIENCE)
        .body_bytes_max(ANSWER_BYTES_MAX)
        .send()?
        .error_for_status()?
        .json()?;
    let Current { time, celsius } = &current;
    let line = format!("{time},{latitude},{longitude},{celsius}\n");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder("/diary").join("weather.csv"))
        .and_then(|mut diary| diary.write_all(line.as_bytes()))
        .map_err(|error| ToolError::Failed(format!("the diary cannot be written: {error}")))?;
    Ok(Json(current))
}

export_tools!(Weather, wants: [
    host("api.open-meteo.com", "asks for the temperature"),
    folder_to_write("/diary", "adds a line to `weather.csv`"),
]);

#[cfg(test)]
mod tests {
    use super::Weather;
    use agent_host_sdk::ToolError;
    use agent_host_sdk::harness::{Bench, grant_folder, serve_http};
    use agent_host_sdk::http::{HttpError, Response};
    use serde_json::json;
    use std::fs;

    #[test]
    fn a_temperature_is_fetched_and_noted() {
        let diary = grant_folder("/diary");
        let server = serve_http(|_| {
            Ok(Response::new(200).with_json(&json!({
                "elevation": 38.0,
                "current": { "time": "2026-11-24T12:45", "temperature_2m": 7.3 },
            })))
        });
        let berlin = json!({ "latitude": 52.52, "longitude": 13.41 });
        let reported = Bench::new(Weather).text("note_weather", berlin).unwrap();
        assert_eq!(
            reported,
            r#"{"time":"2026-11-24T12:45","temperature_2m":7.3}"#
        );
        assert_eq!(
            fs::read_to_string(diary.path().join("weather.csv")).unwrap(),
            "2026-11-24T12:45,52.52,13.41,7.3\n"
        );
        assert_eq!(
            server.requests()[0].url(),
            "https://api.open-meteo.com/v1/forecast\
             ?latitude=52.52&longitude=13.41&current=temperature_2m"
        );
    }

    #[test]
    fn what_the_server_does_not_say_is_not_noted() {
        let diary = grant_folder("/diary");
        let bench = Bench::new(Weather);
        let note = || bench.text("note_weather", json!({ "latitude": 0, "longitude": 0 }));
        let busy = serve_http(|_| Ok(Response::new(429).with_header("retry-after", "60")));
        assert_eq!(note(), Err(ToolError::RetryLater(60_000)));
        drop(busy);
        let _silent = serve_http(|request| {
            let authority = request.authority().to_owned();
            Err(HttpError::TimedOut { authority })
        });
        assert_eq!(
            note(),
            Err(ToolError::Failed(
                "`api.open-meteo.com` took too long to answer".to_owned()
            ))
        );
        assert_eq!(fs::read_dir(diary.path()).unwrap().count(), 0);
    }
}
