import Foundation
import Postgres
import TestSupport

/// A program in a terminal of its own, as a user runs it. Its output and its input are kept.
final class PseudoTerminal: Sendable {
  private let master: Int32
  private let pid: pid_t
  private let state = Lock((output: [UInt8](), end: Int32?.none))

  /// - Parameter environment: all variables of the program.
  init(
    _ executable: String, _ arguments: [String], environment: [String: String], columns: Int = 80, in folder: String
  ) throws {
    let name: String
    (master, name) = try PseudoTerminal.open()
    var size = winsize(ws_row: 40, ws_col: UInt16(columns), ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(master, UInt(TIOCSWINSZ), &size)
    // The program that the shell becomes has the same process id.
    let words = ["-c", #"cd "$0" && exec "$@""#, folder, executable] + arguments
    pid = try PseudoTerminal.start("/bin/sh", words, environment, terminal: name)
    Thread.detachNewThread { [self] in read() }
  }

  /// The text on the terminal, with line feeds alone at the ends of lines.
  var output: String {
    String(decoding: state.withLock { $0.output }, as: UTF8.self).replacing("\r\n", with: "\n")
  }

  /// Whether the terminal shows typed characters.
  var echoes: Bool {
    var settings = termios()
    return tcgetattr(master, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
  }

  func type(_ text: String) {
    let bytes = Array(text.utf8)
    _ = write(master, bytes, bytes.count)
  }

  func waitForOutput(_ text: String, within limit: Duration = .seconds(60)) async throws {
    try await eventually(within: limit) {
      if output.contains(text) { return true }
      if let end = state.withLock({ $0.end }) { throw Unexpected("ended with \(end) before \"\(text)\": \(output)") }
      return false
    }
  }

  /// Waits for the end of the program.
  ///
  /// - Returns: its exit status, or the negated number of the signal that killed it.
  func exitStatus(within limit: Duration = .seconds(60)) async throws -> Int32 {
    try await eventually(within: limit) { state.withLock { $0.end != nil } }
    return state.withLock { $0.end ?? .min }
  }

  func kill() {
    if state.withLock({ $0.end == nil }) { Foundation.kill(pid, SIGKILL) }
  }

  /// Reads until the program has closed its side of the terminal.
  private func read() {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = Foundation.read(master, &buffer, buffer.count)
      if count > 0 { state.withLock { $0.output.append(contentsOf: buffer.prefix(count)) } }
      if count == 0 || count < 0 && errno != EINTR { break }
    }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    close(master)
    let signal = status & 0x7F
    state.withLock { $0.end = signal == 0 ? status >> 8 & 0xFF : -signal }
  }

  #if canImport(Darwin)
    private static let startsSession = Int16(POSIX_SPAWN_SETSID)

    private static func open() throws -> (master: Int32, name: String) {
      let master = posix_openpt(O_RDWR | O_NOCTTY)
      guard master >= 0, fcntl(master, F_SETFD, FD_CLOEXEC) == 0, grantpt(master) == 0, unlockpt(master) == 0,
        let name = ptsname(master)
      else { throw Unexpected("no pseudo terminal: \(errno)") }
      return (master, String(cString: name))
    }
  #else
    // Swift does not see posix_openpt and its like, nor these constants.
    private static let startsSession: Int16 = 0x80
    private static let unlock: UInt = 0x4004_5431
    private static let getNumber: UInt = 0x8004_5430

    private static func open() throws -> (master: Int32, name: String) {
      let master = Foundation.open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
      var isLocked: Int32 = 0
      var number: UInt32 = 0
      guard master >= 0, ioctl(master, unlock, &isLocked) == 0, ioctl(master, getNumber, &number) == 0 else {
        throw Unexpected("no pseudo terminal: \(errno)")
      }
      return (master, "/dev/pts/\(number)")
    }
  #endif

  private static func start(
    _ executable: String, _ arguments: [String], _ environment: [String: String], terminal: String
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The first terminal that the leader of a session opens controls the session: Ctrl-C reaches the program.
    posix_spawnattr_setflags(&attributes, PseudoTerminal.startsSession)
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, terminal, O_RDWR, 0)
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO)
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO)
    let words = ([executable] + arguments).map { strdup($0) }
    let variables = environment.map { strdup("\($0)=\($1)") }
    defer { for text in words + variables { free(text) } }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, executable, &actions, &attributes, words + [nil], variables + [nil])
    guard error == 0 else { throw Unexpected("\(executable) cannot be started: \(error)") }
    return pid
  }
}
