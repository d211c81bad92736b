import AsyncHTTPClient
import Foundation

/// Why a delivery failed, for the log: without tokens or addresses.
public struct DeliveryFailure: Error, CustomStringConvertible {
  /// How to handle the failure.
  public enum Remedy: Sendable, Equatable {
    /// Retry, no earlier than after this many seconds if the other side asks for a pause.
    case later(seconds: Int?)
    /// Do not retry: the other side will never accept it.
    case none
    /// The device is gone: forget it.
    case forgettingTheDevice
  }

  public let description: String
  public let remedy: Remedy
  /// Whether the other side did not respond in time.
  let isTimeout: Bool
  /// Whether the send waited for something in this process and never began.
  private(set) var isLocal = false

  public init(description: String, remedy: Remedy = .later(seconds: nil)) {
    self.init(description: description, remedy: remedy, isTimeout: false)
  }

  init(description: String, remedy: Remedy = .later(seconds: nil), isTimeout: Bool) {
    (self.description, self.remedy, self.isTimeout) = (description, remedy, isTimeout)
  }

  /// A failure to begin, for a reason in this process. It counts as no attempt.
  static func local(_ description: String) -> DeliveryFailure {
    var failure = DeliveryFailure(description: description)
    failure.isLocal = true
    return failure
  }

  /// Any error of a send. The texts of other errors may contain hosts and addresses, so only their types are kept.
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

/// When a failed row is retried.
enum Backoff {
  /// In seconds, unless the other side asks for more.
  private static let longest = 3000.0

  /// The seconds until the next attempt. They double, up to an hour, and vary at random so that rows do not retry in
  /// step.
  ///
  /// - Parameter seconds: the minimum that the other side asks for.
  static func delay(after attempts: Int, notBefore seconds: Int?, using random: inout some RandomNumberGenerator)
    -> Double
  {
    let backoff = min(longest, pow(2, Double(attempts))) * Double.random(in: 0.8...1.2, using: &random)
    return max(backoff, Double(seconds ?? 0) * Double.random(in: 1...1.1, using: &random))
  }

  /// The pause after the database has failed this many times in a row.
  static func pause(after failures: Int) -> Duration {
    min(.seconds(2), .milliseconds(50) * (1 << min(failures, 6)))
  }
}
