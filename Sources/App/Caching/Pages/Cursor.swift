import Foundation
import Postgres

/// The place where the next page begins, and the stamp of the first page. Opaque to clients.
struct Cursor: Sendable, Equatable {
  let list: ListName
  let stamp: Timestamp?
  /// The place of the last returned item in the list's order.
  let time: Timestamp
  let id: UUID

  /// The place of an item in a list's order.
  struct Place: Sendable {
    let time: Timestamp
    let id: UUID
  }

  var text: String {
    Data(packing: list.rawValue, stamp?.microseconds ?? .min, time.microseconds, id).base64URL
  }

  init(list: ListName, stamp: Timestamp?, time: Timestamp, id: UUID) {
    self.list = list
    self.stamp = stamp
    self.time = time
    self.id = id
  }

  init?(_ text: String) {
    guard let bytes = Data(base64URL: text),
      let (name, stamp, time, id) = bytes.unpacked(as: UInt8.self, Int64.self, Int64.self, UUID.self),
      let list = ListName(rawValue: name), Timestamp.years1To9999.contains(time),
      stamp == .min || Timestamp.years1To9999.contains(stamp)
    else { return nil }
    self.init(
      list: list, stamp: stamp == .min ? nil : Timestamp(microseconds: stamp), time: Timestamp(microseconds: time),
      id: id)
  }
}
