import Foundation

/// An error response of the API (RFC 9457).
public struct Problem: Error, Sendable, Hashable {
  /// The slug to switch on. Treat an unknown one by its `status`.
  public var type: Slug
  /// The status in words.
  public var title: String
  public var status: Int
  /// A sentence for developers.
  public var detail: String?
  /// Quote it when you report the problem to the operators.
  public var requestId: String?
  /// Every bad field, for `invalid-fields`; otherwise empty.
  public var errors: [FieldProblem]
  /// The current answer, for `superseded`.
  public var current: CurrentAnswer?
  /// Seconds to wait before the next try, from the header `Retry-After`.
  public var retryAfter: Int?

  public init(
    type: Slug, title: String, status: Int, detail: String? = nil, requestId: String? = nil,
    errors: [FieldProblem] = [], current: CurrentAnswer? = nil, retryAfter: Int? = nil
  ) {
    self.type = type
    self.title = title
    self.status = status
    self.detail = detail
    self.requestId = requestId
    self.errors = errors
    self.current = current
    self.retryAfter = retryAfter
  }
}

extension Problem {
  /// The stable name of a kind of problem. Later releases may add some.
  public struct Slug: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
  }
}

extension Problem: Codable {
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    type = try container.decode(Slug.self, forKey: .type)
    title = try container.decodeIfPresent(String.self, forKey: .title) ?? ""
    status = try container.decode(Int.self, forKey: .status)
    detail = try container.decodeIfPresent(String.self, forKey: .detail)
    requestId = try container.decodeIfPresent(String.self, forKey: .requestId)
    errors = try container.decodeIfPresent([FieldProblem].self, forKey: .errors) ?? []
    current = try container.decodeIfPresent(CurrentAnswer.self, forKey: .current)
    retryAfter = try container.decodeIfPresent(Int.self, forKey: .retryAfter)
  }
}

extension Problem: LocalizedError {
  public var errorDescription: String? { detail ?? title }
}

extension Problem {
  /// Seconds: 30 days. The service never asks for more.
  private static let maximumWait = 30 * 86_400

  /// The problem that a response of Muster has: `application/problem+json` with a slug. Nil for the error page of a
  /// proxy, whatever its status.
  init?(_ response: TransportResponse) {
    guard response.status >= 400, response.mediaType == "application/problem+json",
      let problem = try? JSONDecoder.muster().decode(Problem.self, from: response.body), problem.type.isWellFormed
    else { return nil }
    self = problem
    status = response.status
    retryAfter = Self.retryAfter(of: response)
  }

  /// Seconds that a response asks to wait, if it does.
  static func retryAfter(of response: TransportResponse) -> Int? {
    response.headers["retry-after"].flatMap(Int.init).flatMap { $0 >= 0 ? min($0, maximumWait) : nil }
  }
}

extension Problem.Slug {
  /// Words in lower case with hyphens between them. `about:blank` and URLs are problems of others.
  fileprivate var isWellFormed: Bool {
    let letters = rawValue.utf8
    return !letters.isEmpty
      && letters.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d }
  }
}
