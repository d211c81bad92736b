import HTTPServer

extension Operation {
  /// The access, limits and parameters of an operation, from the document.
  struct Attributes: Sendable {
    /// Who may call.
    enum Access: Sendable {
      case anyone
      /// A token is not needed; the handler looks at one itself.
      case optional
      case signedIn
    }

    /// Who gets the first response to a write with an `Idempotency-Key` again.
    enum Repeats: Sendable {
      case byUser
      /// For a response with a secret: only the session that has got it, because the end of that session ends the
      /// secret.
      case inSession
    }

    let method: HTTPRequest.Method
    /// The template of the path, such as `/api/v1/events/{id}`.
    let path: String
    let access: Access
    let rate: RateLimit?
    /// Nil for an operation that reads no body.
    let body: Body?
    /// The query parameters that it knows.
    let query: [String]
    let takesKey: Bool
    let repeats: Repeats
    let deprecation: Deprecation?

    /// In bytes.
    var maximumBody: Int { body?.maximum ?? Request.maximumBody }

    init(
      _ method: HTTPRequest.Method, _ path: String, access: Access = .signedIn, rate: RateLimit? = nil,
      body: Body? = nil, query: [String] = [], takesKey: Bool = false, repeats: Repeats = .byUser,
      deprecation: Deprecation? = nil
    ) {
      self.method = method
      self.path = path
      self.access = access
      self.rate = rate
      self.body = body
      self.query = query
      self.takesKey = takesKey
      self.repeats = repeats
      self.deprecation = deprecation
    }
  }

  /// The body of a request.
  struct Body: Sendable {
    enum Kind: Sendable {
      case json, form, bytes
    }

    /// How many requests with a large body may run at once.
    struct Places: Sendable {
      let perUser: Int
      let inAll: Int
    }

    let kind: Kind
    let isRequired: Bool
    /// In bytes.
    let maximum: Int
    /// Nil for a body of the usual size.
    let places: Places?
    /// The query parameter that permits a body larger than usual. Nil if any request may have one.
    let condition: (name: String, value: String)?

    init(
      _ kind: Kind, isRequired: Bool = true, maximum: Int = Request.maximumBody, places: Places? = nil,
      condition: (String, String)? = nil
    ) {
      self.kind = kind
      self.isRequired = isRequired
      self.maximum = maximum
      self.places = places
      self.condition = condition
    }
  }
}
