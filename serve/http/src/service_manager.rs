//! What a service manager is told, by systemd's protocol
//! (<https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html>): words in a datagram to a socket that it names.

use std::ffi::OsStr;
use std::io;

/// The server answers requests.
pub const READY: &str = "READY=1";

/// The server finishes what it was given, and ends.
pub const STOPPING: &str = "STOPPING=1";

/// Says it to the socket of this path; a path that begins with `@` is a name of Linux's that no file has. The log has what
/// goes wrong, because a server that cannot say that it works works all the same.
pub fn tell(socket: &OsStr, state: &str) {
    if let Err(error) = send(socket, state) {
        tracing::warn!(%error, state, "the service manager cannot be told");
    }
}

#[cfg(unix)]
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    use std::os::unix::net::UnixDatagram;
    let datagram = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt as _;
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::net::SocketAddr;
        if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
            let address = SocketAddr::from_abstract_name(name)?;
            return datagram.send_to_addr(state.as_bytes(), &address).map(drop);
        }
    }
    datagram.send_to(state.as_bytes(), socket).map(drop)
}

#[cfg(not(unix))]
fn send(_: &OsStr, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
