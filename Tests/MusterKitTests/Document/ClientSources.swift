import Foundation
import TestSupport

/// The public parts of `MusterClient`'s sources.
struct ClientSources {
  /// The names of public functions by their type.
  private var functions: [String: [String]] = [:]
  /// The groups of calls by their type: the name and the type of each.
  private var groups: [String: [(name: String, type: String)]] = [:]

  init() throws {
    let folder = Program.checkout.appending(path: "Sources/MusterKit")
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".swift") {
      read(try String(contentsOf: folder.appending(path: path), encoding: .utf8))
    }
  }

  private mutating func read(_ source: String) {
    var type = ""
    for line in source.split(separator: "\n") {
      if let match = line.firstMatch(of: /^(?:public )?(?:final )?(?:struct|class|actor|enum|extension) (\w+)/) {
        type = String(match.1)
      } else if let match = line.firstMatch(of: /^ +public func (\w+)/) {
        functions[type, default: []].append(String(match.1))
      } else if let match = line.firstMatch(of: /^ +public (?:let|var) (\w+): (\w+API)\b/) {
        groups[type, default: []].append((String(match.1), String(match.2)))
      }
    }
  }

  /// The public calls of the API, such as `events.links.create`: one for each overload.
  var calls: [String] { calls(of: "MusterClient", named: "") }

  private func calls(of type: String, named prefix: String) -> [String] {
    (functions[type] ?? []).map { prefix + $0 }
      + (groups[type] ?? []).flatMap { calls(of: $0.type, named: prefix + $0.name + ".") }
  }
}
