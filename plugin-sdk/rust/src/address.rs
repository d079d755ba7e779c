//! Where a plugin listens.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

use crate::log::{Level, log};
use crate::tracing::given;

const LONGEST_NAME: usize = 64;
/// As `sun_path` holds it, with the byte that ends it.
const LONGEST_PATH: usize = 107;

/// The socket's path, of addresses that name one.
pub(crate) fn unix_path(address: &str) -> Option<PathBuf> {
    let path = address.strip_prefix("unix:")?;
    Some(PathBuf::from(path.strip_prefix("//").unwrap_or(path)))
}

/// The socket beside the first that serves ttrpc: its path and its name. None
/// where no such name can be announced.
pub(crate) fn second_socket(path: &Path) -> Option<(PathBuf, String)> {
    let name = format!("{}.ttrpc", path.file_name()?.to_str()?);
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let second = path.with_file_name(&name);
    let fits = name.len() <= LONGEST_NAME && second.as_os_str().len() <= LONGEST_PATH;
    (fits && name.chars().all(allowed) && !name.starts_with('.')).then_some((second, name))
}

/// Makes a socket that is private, or open to its group alone, from its first moment on.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    prepare(path)?;
    let hidden = Mode::XUSR | Mode::RWXO | if is_shared() { Mode::XGRP } else { Mode::RWXG };
    let before = umask(hidden);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Whether the socket is open to the group of the process: a host of another user dials it.
fn is_shared() -> bool {
    given("BERTH_PLUGIN_SOCKET_SHARED").as_deref() == Some("true")
}

/// Makes the socket's folder, private if it is new, and takes away a socket that no process serves.
fn prepare(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode() & 0o777;
    if is_shared() && mode == 0o700 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o750))?;
    }
    if mode & 0o022 != 0 {
        log(Level::Warn, "others may write to the socket's directory", &[("path", &folder.display())]);
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::other("there is a file that is no socket")),
        Ok(_) if UnixStream::connect(path).is_ok() => Err(io::Error::other("in use")),
        Ok(_) => fs::remove_file(path),
    }
}
