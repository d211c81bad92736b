import Foundation
import Yams

/// The client's words, such as the states of an event: open structs with constants, or closed enums in requests.
struct Words {
  private let schemas: Schemas

  init(_ schemas: Schemas) {
    self.schemas = schemas
  }

  /// The text of the file with all words.
  func file() throws -> String {
    var text = SwiftText()
    var written: Set<String> = []
    let all = schemas.names.compactMap { name in
      schemas[name].flatMap(schemas.words).map { (name, $0.words, $0.isOpen) }
    }
    // Of several schemas with one name in Swift, the open one that bears the name has all words.
    let first = all.filter { schemas.swiftName($0.0) == $0.0 || $0.2 }
    let largest = first.filter { $0.0 == schemas.swiftName($0.0) } + first + all
    for (name, words, isOpen) in largest {
      let swift = schemas.swiftName(name)
      guard schemas.inResponses.contains(name) || schemas.inRequests.contains(name), !schemas.isHand(name),
        let schema = schemas[name], written.insert(swift).inserted
      else { continue }
      guard let description = schema["description"]?.string else { throw Fault("\(name) has no description") }
      if written.count > 1 { text.blank() }
      let (outer, inner) = Models.split(swift)
      let write = { (text: inout SwiftText) in
        text.documentation(description.last == "." ? description : description + ".")
        if isOpen { open(inner, words, schema, in: &text) } else { closed(inner, words, schema, in: &text) }
      }
      if let outer { text.block("extension \(outer)", write) } else { write(&text) }
    }
    return text.text
  }

  private func name(_ word: String, _ schema: Node) -> String {
    schema["x-names"]?[word]?.string ?? word.camelCased
  }

  private func open(_ name: String, _ words: [String], _ schema: Node, in text: inout SwiftText) {
    text.block("public struct \(name): WireValue") {
      for word in words { $0.line("public static let \(self.name(word, schema)): Self = \"\(word)\"") }
      $0.blank()
      $0.documentation("The words that this release knows.")
      $0.line(
        "public static let known: [Self] = [\(words.map { "." + self.name($0, schema) }.joined(separator: ", "))]")
      $0.blank()
      $0.line("public let rawValue: String")
      $0.blank()
      $0.line("public init(rawValue: String) { self.rawValue = rawValue }")
    }
  }

  private func closed(_ name: String, _ words: [String], _ schema: Node, in text: inout SwiftText) {
    text.block("public enum \(name): String, Codable, Sendable, CaseIterable") {
      for word in words {
        let swift = self.name(word, schema)
        $0.line("case \(swift)" + (swift == word ? "" : " = \"\(word)\""))
      }
    }
  }
}

/// The slugs of problems, from the table of errors at the head of the document.
func slugsFile(of document: Document) throws -> String {
  guard let guide = document.entries("info").first(where: { $0.name == "description" })?.node.string else {
    throw Fault("the document has no description")
  }
  var slugs: [String: (status: String, meaning: String)] = [:]
  for line in guide.split(separator: "\n") {
    guard let status = line.firstMatch(of: /^\| *([45]\d\d) *\|/)?.1 else { continue }
    // In the cells, a bar within the text is written as \|.
    let cells = line.replacing("\\|", with: "\0").split(separator: "|").map {
      $0.replacing("\0", with: "|").trimmingCharacters(in: .whitespaces)
    }
    guard cells.count == 3 else { throw Fault("a row of the table of errors has \(cells.count) cells: \(line)") }
    for slug in cells[1].split(separator: ",") {
      let slug = String(slug.filter { $0 != "`" && $0 != " " })
      let meaning = cells[2].prefix(1).uppercased() + cells[2].dropFirst()
      guard slugs.updateValue((String(status), String(meaning)), forKey: slug) == nil else {
        throw Fault("the slug \(slug) has two rows")
      }
    }
  }
  guard slugs.count > 50 else { throw Fault("the table of errors is gone") }
  var text = SwiftText()
  text.block("extension Problem.Slug") {
    for (slug, (status, meaning)) in slugs.sorted(by: { $0.key < $1.key }) {
      $0.documentation("\(status): \(meaning.last == "." ? meaning : meaning + ".")")
      $0.line("public static let \(slug.camelCased): Self = \"\(slug)\"")
    }
  }
  return text.text
}
