extension JSON: JSONWritable {
  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.literal("null")
    case .bool(let value): value.write(to: &json)
    case .number(let text): json.raw(text)
    case .string(let text): json.string(text)
    case .array(let elements): json.array(elements)
    case .object(let members):
      json.object { object in
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
          object.member(name: name) { value.write(to: &$0) }
        }
      }
    }
  }
}
