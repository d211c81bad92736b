import Foundation

/// Where the output goes, and how it may look.
struct Console: Sendable {
  /// Whether results are JSON, for scripts.
  let printsJSON: Bool
  let isColored: Bool
  /// The width of the terminal; nil if the output is not a terminal.
  let columns: Int?

  /// - Parameter environment: `NO_COLOR` (any text) and `TERM=dumb` turn colors off; `COLUMNS` overrides the width.
  init(printsJSON: Bool, hasColors: Bool, environment: [String: String] = ProcessInfo.processInfo.environment) {
    let isTerminal = isatty(STDOUT_FILENO) == 1
    let forbidden = environment["NO_COLOR"]?.isEmpty == false || environment["TERM"] == "dumb"
    self.printsJSON = printsJSON
    isColored = isTerminal && hasColors && !forbidden
    columns = isTerminal ? environment["COLUMNS"].flatMap { Int($0) }.flatMap(\.ifPositive) ?? Console.width : nil
  }

  /// Prints lines to stdout without buffering, even into a pipe.
  func say(_ lines: [String]) {
    for line in lines { print(line) }
    fflush(nil)
  }

  func say(_ line: String) { say([line]) }

  func say(_ table: Table) { say(table.lines(within: columns, isColored: isColored)) }

  /// Prints text that is not a result, such as progress, to stderr.
  func note(_ line: String) {
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }

  func styled(_ text: String, _ style: TextStyle) -> String { isColored ? style.applied(to: text) : text }

  private static var width: Int? {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
    return Int(size.ws_col).ifPositive
  }
}

extension Int {
  fileprivate var ifPositive: Int? { self > 0 ? self : nil }
}
