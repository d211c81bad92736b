/// The changes by drafts and edits to the models that they are about, such as `EventEdit` to `Event`: previews and
/// lists with pending writes show them.
struct Changes {
  private let models: Models

  init(_ models: Models) {
    self.models = models
  }

  /// The text of the file.
  func file() throws -> String {
    var text = SwiftText()
    text.line("import Foundation")
    let all = try models.all()
    for (model, properties) in all {
      let changes = ["Draft", "Edit"].compactMap { kind -> (kind: String, statements: [String])? in
        // A model keeps its id.
        let members = (all.first { $0.name == model + kind }?.properties ?? []).filter { $0.name != "id" }
        let statements = members.compactMap { member in
          properties.first { $0.name == member.name }.map { Self.statement(member, of: kind, over: $0) }
        }
        return statements.isEmpty ? nil : (kind, statements)
      }
      guard !changes.isEmpty else { continue }
      text.blank()
      text.block("extension \(model)") { text in
        for (number, change) in changes.enumerated() {
          if number > 0 { text.blank() }
          text.documentation("Takes over the values of \(change.kind == "Edit" ? "an edit" : "a draft").")
          text.block("mutating func apply(_ \(change.kind.lowercased()): \(model)\(change.kind))") { text in
            for statement in change.statements { text.line(statement) }
          }
        }
      }
    }
    return text.text
  }

  private static func statement(_ new: Models.Property, of kind: String, over old: Models.Property) -> String {
    let (name, argument) = (new.stored, kind.lowercased())
    if new.type.hasPrefix("Edit<") { return "\(name) = \(argument).\(name).applied(to: \(name))" }
    // An absent value leaves what an edit finds, and the default of what a draft creates.
    guard new.isOptional, kind == "Edit" || !old.isOptional else { return "\(name) = \(argument).\(name)" }
    return "if let \(name) = \(argument).\(name) { self.\(name) = \(name) }"
  }
}
