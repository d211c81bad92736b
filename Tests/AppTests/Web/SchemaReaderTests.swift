import Testing

@testable import render_docs

@Suite struct SchemaReaderTests {
  private static let document = """
    components:
      schemas:
        Name: {type: string, minLength: 1, maxLength: 20, pattern: '\\S'}
        Base:
          type: object
          required: [id]
          properties:
            id: {type: string, format: uuid}
        Pet:
          allOf:
            - {$ref: '#/components/schemas/Base'}
            - type: object
              anyOf: [{required: [age]}, {required: [born]}]
              properties:
                name: {$ref: '#/components/schemas/Name', description: The name of the pet}
                age: {type: [integer, 'null'], minimum: 0, default: 1}
                mood: {$ref: '#/components/schemas/Mood', default: calm}
                tags: {type: array, maxItems: 3, items: {type: string, enum: [a, '1']}}
                owner:
                  description: Null for a stray
                  anyOf: [{$ref: '#/components/schemas/Base'}, {type: 'null'}]
                home:
                  type: object
                  properties: {city: {type: string, const: Rome}}
        Mood:
          description: How it feels
          anyOf: [{type: string, enum: [calm, '2']}, {type: string}]
        Mark:
          type: object
          oneOf:
            - {required: [ids], properties: {ids: {type: array}, all: {type: 'null'}}}
            - {required: [before, zone], properties: {ids: {type: 'null'}}}
          allOf:
            - if: {properties: {kind: {const: one}}}
              then: {properties: {ids: {maxItems: 1}}}
          properties:
            ids: {type: [array, 'null'], items: {type: string}}
            before: {type: string}
        Report:
          description: Give exactly one of `pet` and `person`
          oneOf: [{$ref: '#/components/schemas/PetReport'}, {$ref: '#/components/schemas/PersonReport'}]
        PetReport:
          type: object
          required: [pet, reason]
          properties: {pet: {type: string}, reason: {type: string}, text: {type: string}}
        PersonReport:
          type: object
          required: [person, reason]
          properties: {person: {type: string}, reason: {type: string}, text: {type: string}}
    """

  private func reader() throws -> SchemaReader {
    SchemaReader(document: try OpenAPIDocument(yaml: Self.document), markdown: Markdown())
  }

  @Test func `each field has its type, and its rules in words`() throws {
    let pet = try #require(try reader().schemas().first { $0.name == "Pet" })
    let base = ##"<a href="#schema-Base">Base</a>"##
    let lines = pet.fields.map { field in
      "\(field.name)\(field.isRequired ? "!" : ""): \(field.type); \(field.notes.joined(separator: "; "))"
    }
    #expect(
      lines == [
        "id!: string (uuid); ",
        ##"name: <a href="#schema-Name">Name</a>; The name of the pet; 1 to 20 characters; not only white space"##,
        "age: integer or null; at least 0; default <code>1</code>",
        ##"mood: <a href="#schema-Mood">Mood</a>; How it feels; "##
          + "one of <code>calm</code>, <code>2</code>, or a word of a later release; default <code>calm</code>",
        "tags: array of string; at most 3 items; each one of <code>a</code>, <code>1</code>",
        "owner: \(base) or null; Null for a stray", "home: object; ",
        "home.city: string; always <code>Rome</code>",
      ])
    #expect(pet.type == "\(base) with object")
    #expect(try reader().schemas().first { $0.name == "Mood" }?.type == "string")
    let choice = try reader().notes(on: OpenAPIDocument(yaml: "{anyOf: [{required: [a]}, {required: [b]}]}").root)
    #expect(choice == ["requires <code>a</code> or <code>b</code>"])
  }

  @Test func `fields that an operation shows are not shown again`() throws {
    let link = ##"<a href="#add">Add</a>"##
    let base = try #require(try reader().schemas(shownAt: ["Base": link]).first { $0.name == "Base" })
    #expect(base.fields.isEmpty && base.notes == ["fields: see \(link)"])
  }

  @Test func `a rule for members of an object is not a further type, and its members are not further fields`() throws {
    let mark = try #require(try reader().schemas().first { $0.name == "Mark" })
    #expect(mark.type == "object")
    #expect(mark.fields.map { "\($0.name)\($0.isRequired ? "!" : "")" } == ["ids", "before"])
    #expect(
      mark.notes == [
        "requires exactly one of <code>ids</code>, <code>before</code> and <code>zone</code>"
      ])
  }

  @Test func `the members of alternatives are shown once, and required only if all of them require it`() throws {
    let report = try #require(try reader().schemas().first { $0.name == "Report" })
    #expect(report.fields.map { "\($0.name)\($0.isRequired ? "!" : "")" } == ["pet", "reason!", "text", "person"])
  }

  @Test func `an example has the types of the document`() throws {
    let document = try OpenAPIDocument(yaml: "{a: 1.5, b: '1', c: [true, null, 5f3a, -2], d: &d {e: x}, f: *d}")
    let line = #"{"a": 1.5, "b": "1", "c": [true, null, "5f3a", -2], "d": {"e": "x"}, "f": {"e": "x"}}"#
    #expect(document.root.line == line)
    #expect(document.root.lines() == line)
    #expect(document.root.lines(indent: 80).hasPrefix("{\n" + String(repeating: " ", count: 82) + #""a": 1.5,"#))
  }
}
