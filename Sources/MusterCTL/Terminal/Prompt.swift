import Dispatch
import Foundation

/// Questions to the user. They are asked on stderr, so that stdout has results only.
enum Prompt {
  static var isPossible: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  /// Asks for a line.
  static func line(_ question: String) throws -> String {
    ask(question)
    guard let line = readLine() else { throw Failure.interrupted }
    return line
  }

  /// Asks before a risky step, unless the user has said yes on the command line.
  ///
  /// - Parameter refusal: what the program says after a no.
  /// - Throws: `Failure` if the user says no, or if there is no terminal to ask.
  static func confirm(_ question: String, isConfirmed: Bool, refusal: String) throws {
    if isConfirmed { return }
    guard isPossible else { throw Failure.usage("\(question) There is no terminal to ask. Use --yes.") }
    guard try confirms(question) else { throw Failure.refused(refusal) }
  }

  /// Asks until the user says yes or no. An empty line is no.
  private static func confirms(_ question: String) throws -> Bool {
    while true {
      switch try line("\(question) [y/N] ").lowercased() {
      case "y", "yes": return true
      case "", "n", "no": return false
      default: ask("Type y or n.\n")
      }
    }
  }

  /// Asks for a line that the terminal does not show.
  ///
  /// - Throws: `Failure` on Ctrl-C and Ctrl-D. The terminal shows input again in any case.
  static func secret(_ question: String) throws -> String {
    var before = termios()
    guard tcgetattr(STDIN_FILENO, &before) == 0 else { throw Failure.usage("The terminal cannot be read.") }
    var hidden = before
    // Byte by byte, and Ctrl-C as a byte: the settings must be restored before the program ends.
    hidden.c_lflag &= ~tcflag_t(ECHO | ICANON | ISIG)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
    defer {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      ask("\n")
    }
    ask(question)
    return try readSecret()
  }

  private static func readSecret() throws -> String {
    var bytes: [UInt8] = []
    while true {
      var byte: UInt8 = 0
      guard read(STDIN_FILENO, &byte, 1) == 1 else { throw Failure.interrupted }
      switch byte {
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"): return String(decoding: bytes, as: UTF8.self)
      case Key.interrupt, Key.quit: throw Failure.interrupted
      case Key.endOfInput where bytes.isEmpty: throw Failure.interrupted
      case Key.backspace, Key.delete: bytes = Array(String(decoding: bytes, as: UTF8.self).dropLast().utf8)
      case Key.eraseLine: bytes = []
      default: bytes.append(byte)
      }
    }
  }

  private enum Key {
    static let interrupt: UInt8 = 3
    static let endOfInput: UInt8 = 4
    static let backspace: UInt8 = 8
    static let eraseLine: UInt8 = 21
    static let quit: UInt8 = 28
    static let delete: UInt8 = 127
  }

  private static func ask(_ text: String) {
    FileHandle.standardError.write(Data(text.utf8))
  }
}

/// The input of the user at a question, or of a script on stdin.
enum UserInput {
  /// - Parameter name: the missing value, if there is neither a terminal nor a line on stdin.
  static func line(_ question: String, missing name: String) throws -> String {
    if Prompt.isPossible { return try Prompt.line(question) }
    guard let line = readLine(), !line.isEmpty else { throw Failure.usage("The \(name) is missing.") }
    return line
  }

  static func password(_ question: String = "Password: ", fromStdin: Bool) throws -> String {
    if fromStdin { return try passwordLine() }
    guard Prompt.isPossible else { throw Failure.usage("There is no terminal to ask for the password. \(advice)") }
    return try Prompt.secret(question)
  }

  /// Asks twice, because the input is not shown.
  static func newPassword(_ question: String = "Password: ", fromStdin: Bool) throws -> String {
    let password = try password(question, fromStdin: fromStdin)
    if !fromStdin, try Prompt.secret("Again: ") != password {
      throw Failure.usage("The two passwords differ.")
    }
    return password
  }

  private static func passwordLine() throws -> String {
    guard let line = readLine(), !line.isEmpty else { throw Failure.usage("There is no password on stdin.") }
    return line
  }

  private static let advice = "Use --password-stdin and send the password to stdin."
}

/// Runs an action on Ctrl-C, in place of the end of the process.
final class Interrupt {
  private let source: any DispatchSourceSignal

  init(_ action: @escaping @Sendable () -> Void) {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT)
    source.setEventHandler(handler: action)
    source.resume()
  }

  func end() {
    source.cancel()
    signal(SIGINT, SIG_DFL)
  }
}
