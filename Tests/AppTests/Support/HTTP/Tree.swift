@testable import App

/// Writes a tree with the service's writer.
func written(_ json: JSON) -> String {
  var writer = JSONWriter()
  Tree(json: json).write(to: &writer)
  return writer.text
}

private struct Tree: JSONWritable {
  let json: JSON

  func write(to writer: inout JSONWriter) {
    switch json {
    case .null: writer.raw("null")
    case .bool(let value): value.write(to: &writer)
    case .number(let text): writer.raw(text)
    case .string(let text): text.write(to: &writer)
    case .array(let elements): writer.array(elements.map(Tree.init))
    case .object(let members):
      writer.object { object in
        for (name, value) in members { object.member(name: name) { Tree(json: value).write(to: &$0) } }
      }
    }
  }
}
