import AsyncHTTPClient

/// Why something could not be delivered, for the log: without any token or address.
public struct DeliveryFailure: Error, CustomStringConvertible {
  /// What to do about it.
  public enum Remedy: Sendable, Equatable {
    /// Another attempt, not before this many seconds if the other side has said so.
    case later(seconds: Int?)
    /// Nothing: the other side will never take it.
    case none
    /// The device is gone: forget it.
    case forgettingTheDevice
  }

  public let description: String
  public let remedy: Remedy
  /// Whether the other side did not answer in time.
  let isTimeout: Bool
  /// Whether the send waited for something in this process, and never began.
  private(set) var isLocal = false

  public init(description: String, remedy: Remedy = .later(seconds: nil)) {
    self.init(description: description, remedy: remedy, isTimeout: false)
  }

  init(description: String, remedy: Remedy = .later(seconds: nil), isTimeout: Bool) {
    (self.description, self.remedy, self.isTimeout) = (description, remedy, isTimeout)
  }

  /// Any error of a send. The texts of other errors may name hosts and addresses.
  init(_ error: any Error) {
    switch error {
    case let failure as DeliveryFailure: self = failure
    case let error as HTTPClientError:
      let isTimeout = [.deadlineExceeded, .connectTimeout, .readTimeout, .writeTimeout].contains(error)
      self.init(description: error.shortDescription, isTimeout: isTimeout)
      isLocal = error == .getConnectionFromPoolTimeout
    default: self.init(description: "\(type(of: error))")
    }
  }
}
