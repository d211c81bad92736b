/// The parts of the OpenAPI document on the page at `/docs`. `docs.mustache` uses the names of these properties. Texts
/// are plain where the template escapes them, and HTML where a comment says so.
///
/// Mustache looks for a property that is nil in the outer objects too. So no object within another one may have an
/// optional property whose name the outer one also has.
struct APIReference {
  let title: String
  let version: String
  let summary: String
  /// HTML: the description of the document, up to its first heading, and the rest of it.
  let lead: String
  let guide: String
  let chapters: [Link]
  let groups: [Group]
  let schemas: [Schema]

  struct Link {
    let name: String
    let anchor: String
  }

  /// The operations with one tag.
  struct Group {
    let name: String
    let anchor: String
    let purpose: String
    let operations: [Operation]
  }

  struct Operation {
    let id: String
    let method: String
    let path: String
    let summary: String
    /// HTML.
    let description: String
    let isOpen: Bool
    let hasParameters: Bool
    let parameters: [Field]
    let request: Request?
    let responses: [Response]
    /// Nil for a request that Muster sends.
    let curl: Curl?
  }

  struct Curl {
    let command: String
    /// The documented statuses of success, with spaces between them.
    let statuses: String
  }

  struct Request {
    let isRequired: Bool
    let types: String
    /// HTML.
    let schema: String
    let notes: [String]
    let fields: [Field]
    let hasFields: Bool
    let examples: [Example]
  }

  struct Response {
    let status: String
    /// HTML.
    let description: String
    /// Nil for a problem: all of them look alike.
    let schema: String?
    let headers: String?
    /// Empty for a problem: all of them look alike.
    let examples: [Example]
  }

  struct Schema {
    let name: String
    let anchor: String
    /// HTML.
    let type: String
    let notes: [String]
    let fields: [Field]
    let hasFields: Bool
  }

  /// A parameter, or a member of an object.
  struct Field {
    let name: String
    /// Where a parameter is: `path`, `query` or `header`.
    let place: String
    let isRequired: Bool
    /// HTML.
    let type: String
    let notes: [String]
  }

  struct Example {
    let caption: String?
    let text: String
  }

  /// Whether a request needs an access token, as operations do unless they lift the document's requirement.
  static func needsToken(_ operation: Tree) -> Bool { operation.member("security") != .array([]) }
}
