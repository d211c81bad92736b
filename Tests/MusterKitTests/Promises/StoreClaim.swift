import Foundation
import MusterKit

/// A collection as a store shows it while it claims to be up to date.
struct StoreClaim: Sendable {
  let device: String
  /// Nil for the past events.
  let collection: CacheCollection?
  let stamp: Stamp?
  /// When the request was sent whose response is the reason for the claim.
  let asOf: Date
  /// The items as JSON, in their order.
  let items: [String]
  /// Whether the list continues after these items.
  var hasMore = false

  enum Finding: Equatable {
    case holds
    /// The list has changed since, and its earlier state is unknown.
    case undecided
    case isFalse(String)
  }

  /// Seconds. The maximum delay between the time in a change's stamp and the moment when the change becomes visible.
  private static let commitTime: TimeInterval = 2

  /// Compares the claim with what the server sends for the same collection.
  ///
  /// - Parameter quietSince: the time since which nothing has changed on the server. Nil if something may have.
  func finding(against server: ServerCopy, quietSince: Date? = nil) -> Finding {
    let expected = hasMore ? Array(server.items.prefix(items.count)) : server.items
    if items == expected, !hasMore || server.items.count > items.count { return .holds }
    if stamp == server.stamp, stamp != nil {
      return .isFalse("\(self) shows \(difference(to: server)) of the list with this stamp.")
    }
    if let quietSince, asOf >= quietSince {
      return .isFalse("\(self) shows \(difference(to: server)), and nothing has changed since \(quietSince.precise).")
    }
    if let stamp = server.stamp, let changed = stamp.date, changed.addingTimeInterval(Self.commitTime) < asOf {
      return .isFalse("\(self) shows \(difference(to: server)), but the list last changed at \(stamp).")
    }
    return .undecided
  }

  private func difference(to server: ServerCopy) -> String {
    let changes = items.difference(from: server.items)
    let (surplus, lacking) = (changes.insertions, changes.removals)
    let first = (surplus + lacking).prefix(4).map { change in
      switch change {
      case .insert(let place, let item, _): "\n  + \(place): \(item)"
      case .remove(let place, let item, _): "\n  - \(place): \(item)"
      }
    }
    return "\(surplus.count) items too many and lacks \(lacking.count)" + first.joined()
  }
}

extension StoreClaim: CustomStringConvertible {
  var description: String {
    "\(device), \(collection?.rawValue ?? "past events"), stamp \(stamp?.rawValue ?? "none"), as of \(asOf.precise),"
  }
}

extension Stamp {
  /// The time in the stamp, to the millisecond.
  var date: Date? {
    let parts = rawValue.dropLast().split(separator: ".")
    guard parts.count == 2, let fraction = Double("0.\(parts[1])"),
      let seconds = try? Date("\(parts[0])Z", strategy: .iso8601)
    else { return nil }
    return seconds.addingTimeInterval(fraction)
  }
}

extension Date {
  /// With milliseconds.
  var precise: String { formatted(.iso8601.time(includingFractionalSeconds: true)) }
}
