import Foundation

/// Code that guides show and tests compile.
public enum Guide {
  /// The blocks of Swift in a guide.
  ///
  /// - Parameter path: below the checkout.
  public static func blocks(in path: String) throws -> [String] {
    try read(path).matches(of: /```swift\n(?<code>[\s\S]*?)\n```/).map { String($0.output.code) }
  }

  /// The parts of a file of Swift between `// snippet` and `// end`, without their indentation.
  public static func snippets(in path: String) throws -> [String] {
    var snippets: [String] = []
    var lines: [Substring]?
    for line in try read(path).split(separator: "\n", omittingEmptySubsequences: false) {
      switch line.drop(while: { $0 == " " }) {
      case "// snippet": lines = []
      case "// end":
        let indentation = lines?.first?.prefix { $0 == " " }.count ?? 0
        snippets.append((lines ?? []).map { $0.dropFirst(indentation) }.joined(separator: "\n"))
        lines = nil
      default: lines?.append(line)
      }
    }
    return snippets
  }

  public static func read(_ path: String) throws -> String {
    try String(contentsOf: Program.checkout.appending(path: path), encoding: .utf8)
  }
}
