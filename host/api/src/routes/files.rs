//! Files of a session: hand one over as it is, list them, get one back.

mod download;

use crate::caller::Caller;
use crate::codes::{self, Refused, error_codes};
use crate::input::{
    InPath, Params, SessionInPath, TargetSession, existing, read_at_most, read_path,
};
use crate::problem::Problem;
use crate::state::Api;
use crate::wire::{self, ContentDigest};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use broker::UploadFile;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::file::{FILE_BYTES_MAX, UNKNOWN_MEDIA_TYPE, check_media_type};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

error_codes! {
    UploadErrors = [
        InvalidFileName, InvalidMediaType, SessionClosed, SessionFilesFull,
    ] + LiveAgent + File + Session;
    ShowErrors = [FileNotFound] + SessionOfAgent;
}

/// Query that names the file.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct UploadParams {
    /// The file name: 1 to 255 bytes, no `/`, no `\`, no control characters, not `.` or `..`.
    #[param(max_length = 255)]
    name: String,
}

/// The bytes of a file.
#[derive(Debug, utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "says in the description what a body is")]
pub(super) struct FileContent(Vec<u8>);

/// Uploads a file, such as one that a question asks for.
///
/// Answer the question with the file's `digest`. The body is the file itself, 10 MiB at most, and
/// `Content-Type` is its media type (`application/octet-stream` by default). The same content under
/// the same name is one file; the response is 200 when it exists already. A session has at most 100
/// files, of 200 MiB together.
#[utoipa::path(
    post, path = "/api/agents/{id}/sessions/{sid}/files", tag = "sessions",
    operation_id = "uploadFile",
    security(("token" = ["write"])),
    params(SessionInPath, UploadParams),
    request_body(
        content = inline(FileContent),
        content_type = "application/octet-stream",
        description = "The file, of any media type.",
    ),
    responses(
        (status = 201, description = "It is kept.", body = wire::FileView),
        (status = 200, description = "It was there.", body = wire::FileView),
    ),
)]
pub(super) async fn upload(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
    Params(params): Params<UploadParams>,
    request: Request,
) -> Result<(StatusCode, axum::Json<wire::FileView>), Refused<UploadErrors>> {
    let (parts, body) = request.into_parts();
    let media_type = media_type(&parts.headers)?;
    // Whoever may not is told before they have sent all of it.
    api.command()?
        .files()
        .may_upload(&caller.user, &target, session, &params.name)
        .await?;
    let _permit = api.upload_permit(&caller.user).await?;
    let content = read_file("a file", FILE_BYTES_MAX, &parts.headers, body).await?;
    let command = UploadFile {
        target,
        session,
        name: params.name,
        media_type,
        content,
        user: caller.user,
    };
    let (row, is_new) = api.command()?.files().upload(command).await?;
    let status = if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok((status, axum::Json(wire::file(&row))))
}

/// Reads a body that is a file of at most so many bytes.
pub(super) async fn read_file(
    what: &str,
    bytes_max: usize,
    headers: &HeaderMap,
    body: Body,
) -> Result<Vec<u8>, Problem> {
    let too_large = || {
        let detail = format!("{what} has at most {bytes_max} bytes");
        Problem::new(ErrorCode::FileTooLarge, detail)
    };
    let content = read_at_most(bytes_max, headers, body, too_large).await?;
    Ok(content.into())
}

/// Returns the media type that a request declares for its body.
pub(super) fn media_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return Ok(UNKNOWN_MEDIA_TYPE.to_owned());
    };
    let text = value.to_str().unwrap_or_default();
    let unsupported = |detail| Problem::new(ErrorCode::UnsupportedMediaType, detail);
    check_media_type(text).map_err(unsupported)?;
    Ok(text.to_owned())
}

/// Files of a session.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct FileList {
    /// The files in the order in which they were uploaded. There are 100 at most.
    files: Vec<wire::FileView>,
}

/// Lists the files of a session.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/files", tag = "sessions",
    operation_id = "listFiles",
    security(("token" = ["read"])),
    params(SessionInPath),
    responses((status = 200, description = "The files.", body = FileList)),
)]
pub(super) async fn list(
    State(api): State<Api>,
    caller: Caller,
    TargetSession(target, session): TargetSession,
) -> Result<axum::Json<FileList>, Refused<codes::SessionOfAgent>> {
    let files = caller
        .reading(&api)?
        .files()
        .list(&caller.user, &target, session)
        .await?;
    Ok(axum::Json(FileList {
        files: files.iter().map(wire::file).collect(),
    }))
}

/// Query that selects one of several files with the same content.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DownloadParams {
    /// The one that is called so; without, the one that came first.
    name: Option<String>,
}

/// Downloads a file of a session, as it was uploaded and with its media type, or what a message of
/// the session shows as a blob.
///
/// Its `ETag` is its digest: with that in `If-None-Match`, the response is 304.
/// `Content-Disposition` is `attachment`, so that browsers save the file instead of showing it.
#[utoipa::path(
    get, path = "/api/agents/{id}/sessions/{sid}/files/{digest}", tag = "sessions",
    operation_id = "downloadFile",
    security(("token" = ["read"])),
    params(
        SessionInPath,
        (
            "digest" = ContentDigest,
            Path,
            description = "The file's `digest`: `sha256:` and 64 hexadecimal digits.",
        ),
        DownloadParams,
    ),
    responses(
        (
            status = 200,
            description = "The file.",
            content(
                (inline(FileContent) = "application/octet-stream"),
                (inline(FileContent) = "*/*"),
            ),
            headers(
                (
                    "ETag" = String,
                    description = "Its digest, in quotes: with it in `If-None-Match` it is not \
                        sent again."
                ),
                (
                    "Content-Disposition" = String,
                    description = "An attachment, with the name of the file (RFC 6266)."
                ),
            ),
        ),
        (
            status = 304,
            description = "You have it.",
            headers(("ETag" = String, description = "Its digest, in quotes.")),
        ),
    ),
)]
pub(super) async fn show(
    State(api): State<Api>,
    caller: Caller,
    InPath((id, session, digest)): InPath<(String, String, String)>,
    Params(params): Params<DownloadParams>,
    headers: HeaderMap,
) -> Result<Response, Refused<ShowErrors>> {
    let target = existing(&id)?;
    let session = read_path("sid", &session)?;
    let no_digest = || {
        let detail = "a digest is `sha256:` and 64 hexadecimal digits";
        Problem::invalid_id("digest", detail)
    };
    let digest = Digest::from_reference(&digest).ok_or_else(no_digest)?;
    let name = params.name.as_deref();
    let (file, content) = caller
        .reading(&api)?
        .files()
        .get(&caller.user, &target, session, digest, name)
        .await?;
    Ok(download::response(&file, content, &headers))
}
