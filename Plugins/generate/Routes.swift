import Yams

/// `enum Route` of the client: the operations of the API, with the values in their paths.
struct Routes {
  private static let prefix = "/api/v1"

  private let routes: [Route]

  init(_ schemas: Schemas, _ operations: [Operation]) throws {
    routes = try operations.filter { $0.path.hasPrefix(Self.prefix + "/") }.map { operation in
      try Route(operation, path: String(operation.path.dropFirst(Self.prefix.count)), schemas)
    }
  }

  /// A part of a path between two slashes.
  enum Word {
    case literal(String)
    /// An id, and the problem of a word that is none.
    case id(type: String, problem: String)
    case text
  }

  struct Route {
    let operation: Operation
    /// Such as `POST /friend-requests/{id}/accept`.
    let template: String
    let words: [Word]
    /// The expected response.
    let success: String

    var id: String { operation.id }

    init(_ operation: Operation, path: String, _ schemas: Schemas) throws {
      self.operation = operation
      template = "\(operation.method.uppercased()) \(path)"
      words = try path.split(separator: "/").map { try Routes.word(String($0), of: operation, schemas) }
      success = try Routes.success(of: operation, schemas.document)
    }

    /// The types of the values in the path.
    var types: [String] {
      words.compactMap { word in
        switch word {
        case .literal: nil
        case .id(let type, _): type
        case .text: "String"
        }
      }
    }
  }

  fileprivate static func word(_ word: String, of operation: Operation, _ schemas: Schemas) throws -> Word {
    guard word.first == "{" else { return .literal(word) }
    let name = String(word.dropFirst().dropLast())
    let place = "\(operation.id), \(word)"
    guard let schema = operation.parameters.first(where: { $0["name"]?.string == name })?["schema"] else {
      throw Fault("\(place) has no schema")
    }
    let type = try schemas.type(of: schema, in: place).name
    guard let reference = Schemas.reference(schema) else { return .text }
    let usual = String(reference.dropLast(2)).kebabCased + "-not-found"
    // Where the document names another problem, it says that this one is that of a word that is not an id.
    let missing = operation.node["responses"]?.entries.first { $0.name == "404" }
    let described = try missing.map { try schemas.document.resolved($0.node)["description"]?.string ?? "" } ?? ""
    let slugs = described.matches(of: /`([a-z-]+-not-found)`/).map { String($0.1) }
    return .id(type: type, problem: slugs.contains(usual) ? usual : slugs.last ?? "route-not-found")
  }

  /// The body of a success. All statuses of 2xx agree on it.
  fileprivate static func success(of operation: Operation, _ document: Document) throws -> String {
    let successes = (operation.node["responses"]?.entries ?? []).filter { $0.name.hasPrefix("2") }
    let types = try Set(
      successes.map { try document.resolved($0.node)["content"]?.entries.map(\.name) ?? [] })
    guard let only = types.first, types.count == 1, only.count <= 1 else {
      throw Fault("\(operation.id): a success has one media type, or none")
    }
    guard let type = only.first else { return ".nothing" }
    return type == "application/json" ? ".json" : ".body(type: \"\(type)\")"
  }

  /// The text of the file.
  func file() -> String {
    var text = SwiftText()
    text.documentation("An operation of the API, with the values in its path.")
    text.block("enum Route: Sendable, Hashable") {
      for route in routes {
        $0.documentation("`\(route.template)`: \(route.operation.summary)")
        $0.line("case \(route.id)" + (route.types.isEmpty ? "" : "(\(route.types.joined(separator: ", ")))"))
      }
      $0.blank()
      $0.documentation("The method and the path below `\(Self.prefix)`, as the document writes it.")
      $0.block("var template: String") {
        $0.block("switch self") {
          for route in routes { $0.line("case .\(route.id): \"\(route.template)\"") }
        }
      }
      $0.blank()
      $0.documentation("The values in the path, in its order.")
      $0.block("var values: [String]") {
        $0.block("switch self") {
          for route in routes where !route.types.isEmpty {
            $0.line("case .\(route.id)(\(route.bindings)): [\(route.texts)]")
          }
          $0.line("default: []")
        }
      }
      $0.blank()
      $0.documentation("Whether only requests with a token get a response.")
      Self.partition("var needsToken: Bool", routes, by: { String($0.operation.access == "signedIn") }, in: &$0)
      $0.blank()
      $0.documentation("The body of a success.")
      Self.partition("var success: ExpectedResponse", routes, by: \.success, in: &$0)
      reader(in: &$0)
    }
    return text.text
  }

  /// A property with few values. The most frequent one is the default.
  private static func partition(
    _ head: String, _ routes: [Route], by value: (Route) -> String, in text: inout SwiftText
  ) {
    let groups = Dictionary(grouping: routes, by: value).sorted { ($0.value.count, $0.key) < ($1.value.count, $1.key) }
    text.block(head) {
      $0.block("switch self") {
        for (value, routes) in groups.dropLast() {
          $0.line("case \(routes.map { ".\($0.id)" }.joined(separator: ", ")): \(value)")
        }
        if let last = groups.last { $0.line("default: \(last.key)") }
      }
    }
  }

  private func reader(in text: inout SwiftText) {
    text.blank()
    text.documentation("Reads the method and the path of a request.")
    text.line("///")
    text.line("/// - Parameter path: below `\(Self.prefix)`, percent-encoded.")
    text.line("/// - Throws: the problem of a path that the service does not know, or of a word that is not an id")
    text.block("init(method: String, path: String) throws(Problem)") {
      $0.line("let words = Self.words(of: path)")
      $0.block("switch words.count") {
        let byCount = Dictionary(grouping: routes, by: \.words.count).sorted { $0.key < $1.key }
        for (count, routes) in byCount {
          $0.line("case \(count):")
          let words = (0..<count).map { "words[\($0)]" }.joined(separator: ", ")
          $0.block("switch (method, \(words))") {
            // `/users/me` stands before `/users/{id}`.
            for route in routes.sorted(by: { $0.template < $1.template }) {
              $0.line("case (\(route.matcher)): self = .\(route.id)\(route.arguments)")
            }
            $0.line("default: throw .missing(.routeNotFound)")
          }
        }
        $0.line("default: throw .missing(.routeNotFound)")
      }
    }
  }
}

extension Routes.Route {
  /// A pattern of the values, such as `let first, let second`.
  fileprivate var bindings: String { bound.map { "let \($0.name)" }.joined(separator: ", ") }

  /// The values as text, such as `first.wire, second`.
  fileprivate var texts: String { bound.map { $0.name + ($0.type == "String" ? "" : ".wire") }.joined(separator: ", ") }

  private var bound: [(name: String, type: String)] { Array(zip(["first", "second", "third"], types)) }

  /// The elements of a pattern for the method and the words.
  fileprivate var matcher: String {
    let parts = words.map { word in
      if case .literal(let text) = word { "\"\(text)\"" } else { "_" }
    }
    return (["\"\(operation.method.uppercased())\""] + parts).joined(separator: ", ")
  }

  /// The values of the path, read from its words.
  fileprivate var arguments: String {
    let values = words.enumerated().compactMap { number, word -> String? in
      switch word {
      case .literal: nil
      case .id(_, let problem): "try Self.id(words[\(number)], else: .\(problem.camelCased))"
      case .text: "words[\(number)]"
      }
    }
    return values.isEmpty ? "" : "(\(values.joined(separator: ", ")))"
  }
}

extension String {
  /// `FriendRequest` becomes `friend-request`.
  fileprivate var kebabCased: String {
    reduce(into: "") { $0 += $1.isUppercase && !$0.isEmpty ? "-\($1.lowercased())" : $1.lowercased() }
  }
}
