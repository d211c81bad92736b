import Foundation

/// The failures in a preview.
public struct PreviewFailures: Sendable, Hashable {
  /// The response to some requests.
  public struct Refusal: Sendable, Hashable {
    /// Such as `PUT`; nil for all methods.
    public var method: String?
    /// Below `/api/v1`, without the query, such as `/events`. A `*` at the end stands for any rest.
    public var path: String
    public var problem: Problem

    public init(_ problem: Problem, for path: String, method: String? = nil) {
      self.problem = problem
      self.path = path
      self.method = method
    }
  }

  /// Whether no request reaches the service.
  public var isOffline: Bool
  /// Every nth request fails without a response, and has no effect. Nil for none.
  public var everyNth: Int?
  /// The first one that matches a request applies.
  public var refusals: [Refusal]

  public init(isOffline: Bool = false, everyNth: Int? = nil, refusals: [Refusal] = []) {
    self.isOffline = isOffline
    self.everyNth = everyNth
    self.refusals = refusals
  }

  /// Nothing goes wrong.
  public static let none = PreviewFailures()

  /// The phone has no network.
  public static let offline = PreviewFailures(isOffline: true)

  /// A problem as the response to some requests, and everything else as usual.
  ///
  /// - Parameters:
  ///   - path: below `/api/v1`, without the query. A `*` at the end stands for any rest.
  ///   - method: nil for all methods.
  public static func refusing(_ path: String, method: String? = nil, with problem: Problem) -> PreviewFailures {
    PreviewFailures(refusals: [Refusal(problem, for: path, method: method)])
  }

  func problem(for request: PreviewRequest) -> Problem? {
    refusals.first { $0.applies(to: request) }?.problem
  }
}

extension PreviewFailures.Refusal {
  fileprivate func applies(to request: PreviewRequest) -> Bool {
    guard method == nil || method == request.method else { return false }
    return path.hasSuffix("*") ? request.path.hasPrefix(path.dropLast()) : request.path == path
  }
}
