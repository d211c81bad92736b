import Foundation

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
