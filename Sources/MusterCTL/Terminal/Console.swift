import Foundation
import MusterKit

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
  func note(_ line: String) { Console.note(line) }

  static func note(_ line: String) {
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

/// Results of commands: JSON for scripts, or text for people.
extension Console {
  func show<Value>(_ reply: Reply<Value>, _ lines: (Value) throws -> [String]) throws {
    if printsJSON { return say(JSONText.of(reply.json)) }
    say(try lines(reply.value))
  }

  /// - Parameter line: a text that may have names in it.
  func show<Value>(_ reply: Reply<Value>, _ line: (Value) throws -> String) throws {
    try show(reply) { [try line($0).safeLine] }
  }

  /// Shows a list as a table. If the list is empty, says so on stderr.
  func show<Item>(_ reply: Reply<[Item]>, orNote empty: String, as table: ([Item]) throws -> Table) throws {
    if printsJSON { return say(JSONText.of(reply.json)) }
    guard !reply.value.isEmpty else { return note(empty) }
    say(try table(reply.value))
  }

  /// Names and values, one pair below the other. A value may have several lines.
  func lines(of fields: [(name: String, value: String)]) -> [String] {
    let width = fields.reduce(0) { max($0, $1.name.count) } + 2
    return fields.flatMap { field in
      field.value.safeLines.enumerated().map { index, line in
        let name = index == 0 ? field.name : ""
        return styled(name, .faint) + String(repeating: " ", count: width - name.count) + line
      }
    }
  }
}

/// How a text looks in a terminal that has colors.
enum TextStyle: String {
  case plain = ""
  case bold = "1"
  case faint = "2"
  case red = "31"
  case green = "32"
  case yellow = "33"

  func applied(to text: String) -> String {
    self == .plain || text.isEmpty ? text : "\u{1B}[\(rawValue)m\(text)\u{1B}[0m"
  }
}
