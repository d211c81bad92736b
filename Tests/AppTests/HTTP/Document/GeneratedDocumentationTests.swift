import Testing

@testable import generate

/// Docstrings of the client say in Swift what the document says about JSON.
@Suite struct GeneratedDocumentationTests {
  private static let yaml = """
    # | `x-null` | a | b |
    # | `x-name` | a | b |
    openapi: 3.1.0
    security: [{bearer: []}]
    paths:
      /api/v1/plans:
        post:
          operationId: create
          summary: Create
          requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/PlanDraft'}}}}
          responses: {'204': {description: Done}, '429': {description: '`rate-limited`'}}
        patch:
          operationId: edit
          summary: Edit
          requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/PlanEdit'}}}}
          responses:
            '200': {description: Done, content: {application/json: {schema: {$ref: '#/components/schemas/Plans'}}}}
            '429': {description: '`rate-limited`'}
    components:
      schemas:
        PlanEdit:
          type: object
          x-null: clears
          description: A change. An absent member keeps its value; null clears it
          properties:
            end: {type: [string, 'null'], description: 'The end. Null: none'}
            copy: {type: [boolean, 'null'], x-null: clears, description: 'Absent: a copy'}
        PlanDraft:
          type: object
          description: A new plan
          properties:
            size: {type: [integer, 'null'], description: The size, default: 3}
        Plan:
          type: object
          description: A plan
          required: [note, count]
          properties:
            note: {type: [string, 'null'], description: Absent or null for none}
            count: {type: integer, description: The count}
        PlanInList:
          x-name: Plan
          type: object
          description: A plan in a list
          properties:
            note: {type: [string, 'null'], description: Null for none}
            count: {type: integer, description: The count. Absent for guests}
        Plans:
          type: object
          description: All plans
          required: [first, rest]
          properties:
            first: {$ref: '#/components/schemas/Plan'}
            rest: {type: array, description: The others, items: {$ref: '#/components/schemas/PlanInList'}}
    """

  @Test func `nil, keep, clear and defaults`() throws {
    let document = try Document(yaml: Self.yaml)
    let text = try Models(Schemas(document, document.operations())).file()
    let comments = text.matches(of: /\/\/\/ (.*)\n/).map { String($0.1) }
    #expect(
      comments == [
        "A change. Nil and `.keep` keep a value, `.clear` removes it.", "The end. `.clear`: none.", "`.keep`: a copy.",
        "A new plan.", "The size. Default: `3`.", "A plan.", "Nil for none.", "The count. Nil for guests.",
        "All plans.", "A plan.",
        "The others.",
      ])
  }
}
