import HTML

/// Reads the operations of the OpenAPI document.
struct ReferenceReader {
  private let document: OpenAPIDocument
  private let baseURL: String
  private let headings: [Markdown.Heading]
  private let markdown: Markdown
  private let schemas: SchemaReader

  private static let methods: Set = ["get", "put", "post", "patch", "delete"]
  /// Responses of every operation, which the guide describes once.
  private static let common: Set = ["#/components/responses/InternalError", "#/components/responses/NotServed"]

  init(_ document: OpenAPIDocument, baseURL: String) {
    self.document = document
    self.baseURL = baseURL
    headings = Markdown.headings(in: document.root.member("info").member("description").text)
    markdown = Markdown(linkingTo: headings)
    schemas = SchemaReader(document: document, markdown: markdown)
  }

  func reference() -> APIReference {
    let info = document.root.member("info")
    let description = info.member("description").text
    let guide = description.firstRange(of: "\n## ")?.lowerBound ?? description.endIndex
    return APIReference(
      title: info.member("title").text, version: info.member("version").text, summary: info.member("summary").text,
      lead: markdown.html(String(description[..<guide])), guide: markdown.html(String(description[guide...])),
      chapters: headings.filter { $0.level == 2 }.map { APIReference.Link(name: $0.title, anchor: $0.anchor) },
      groups: groups() + [webhooks()], schemas: schemas.schemas(shownAt: homes()))
  }

  // MARK: Groups

  private func groups() -> [APIReference.Group] {
    var operations: [String: [APIReference.Operation]] = [:]
    for (path, item) in document.root.member("paths").members {
      for (method, value) in item.members where Self.methods.contains(method) {
        let tag = value.member("tags").elements.first?.text ?? ""
        operations[tag, default: []].append(operation(method.uppercased(), path, item, value))
      }
    }
    return document.root.member("tags").elements.map { tag in
      let name = tag.member("name").text
      return APIReference.Group(
        name: name, anchor: "tag-\(name.lowercased())", purpose: tag.member("description").text,
        operations: operations[name] ?? [])
    }
  }

  private func webhooks() -> APIReference.Group {
    APIReference.Group(
      name: "Webhooks", anchor: "tag-webhooks", purpose: "Requests that Muster sends",
      operations: document.root.member("webhooks").members.flatMap { _, item in
        item.members.map { operation($0.key.uppercased(), nil, item, $0.value) }
      })
  }

  /// Links to the operations that show the fields of a schema: each is the only one with such a body.
  private func homes() -> [String: String] {
    var users: [String: [Tree]] = [:]
    for (_, item) in document.root.member("paths").members {
      for (method, operation) in item.members where Self.methods.contains(method) {
        let media = document.resolved(operation.member("requestBody")).member("content").members.first?.value
        guard let name = media?.member("schema").member("$ref").text.split(separator: "/").last else { continue }
        users[String(name), default: []].append(operation)
      }
    }
    return users.filter { $0.value.count == 1 }.mapValues { operations in
      let (id, summary) = (operations[0].member("operationId").text, operations[0].member("summary").text)
      return "<a href=\"#\(id)\">\(summary.htmlEscaped)</a>"
    }
  }

  // MARK: Operations

  /// - Parameter path: nil for a webhook, whose URL its user chooses.
  private func operation(_ method: String, _ path: String?, _ item: Tree, _ value: Tree) -> APIReference.Operation {
    let parameters = (item.member("parameters").elements + value.member("parameters").elements)
      .map { document.resolved($0) }
    let responses = value.member("responses").members.filter { !Self.common.contains($0.value.member("$ref").text) }
      .map { response($0.key, $0.value) }
    let curl = path.map { path in
      APIReference.Curl(
        command: CurlExample(document: document, baseURL: baseURL).command(method, path, value, parameters),
        statuses: responses.map(\.status).filter { $0.hasPrefix("2") }.joined(separator: " "))
    }
    return APIReference.Operation(
      id: value.member("operationId").text, method: method, path: path ?? "the webhook's URL",
      summary: value.member("summary").text, description: markdown.html(value.member("description").text),
      isOpen: !APIReference.needsToken(value), hasParameters: !parameters.isEmpty,
      parameters: parameters.map(parameter), request: request(value.member("requestBody")), responses: responses,
      curl: curl)
  }

  private func parameter(_ value: Tree) -> APIReference.Field {
    let schema = value.member("schema")
    let description = value.member("description").text
    return APIReference.Field(
      name: value.member("name").text, place: value.member("in").text,
      isRequired: value.member("required") == .bool(true), type: schemas.typeName(of: schema),
      notes: (description.isEmpty ? [] : [markdown.inline(description)]) + schemas.notes(on: schema))
  }

  private func request(_ body: Tree) -> APIReference.Request? {
    let body = document.resolved(body)
    let content = body.member("content").members
    guard let media = content.first?.value else { return nil }
    let schema = media.member("schema")
    let fields = schemas.fields(of: schema)
    return APIReference.Request(
      isRequired: body.member("required") == .bool(true), types: content.map(\.key).joined(separator: ", "),
      schema: schemas.typeName(of: schema), notes: schemas.notes(on: schema), fields: fields,
      hasFields: !fields.isEmpty, examples: examples(media))
  }

  private func response(_ status: String, _ value: Tree) -> APIReference.Response {
    let value = document.resolved(value)
    let (type, media) = value.member("content").members.first.map { ($0.key, $0.value) } ?? ("", nil)
    // All responses have a request id.
    let headers = value.member("headers").members.map(\.key).filter { $0 != "X-Request-Id" }
    return APIReference.Response(
      status: status, description: markdown.inline(value.member("description").text),
      schema: type == "application/problem+json" ? nil : media.map { schemas.typeName(of: $0.member("schema")) },
      headers: headers.isEmpty ? nil : headers.map { "<code>\($0.htmlEscaped)</code>" }.joined(separator: ", "),
      examples: status.hasPrefix("2") ? media.map(examples) ?? [] : [])
  }

  private func examples(_ media: Tree) -> [APIReference.Example] {
    media.examples.map { APIReference.Example(caption: $0.name, text: $0.value.stringValue ?? $0.value.lines()) }
  }
}
