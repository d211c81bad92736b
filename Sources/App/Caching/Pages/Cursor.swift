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
    var bytes = Data([list.rawValue])
    for number in [stamp?.microseconds ?? .min, time.microseconds] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    withUnsafeBytes(of: id.uuid) { bytes.append(contentsOf: $0) }
    return bytes.base64URL
  }

  init(list: ListName, stamp: Timestamp?, time: Timestamp, id: UUID) {
    self.list = list
    self.stamp = stamp
    self.time = time
    self.id = id
  }

  init?(_ text: String) {
    guard let bytes = Data(base64URL: text), bytes.count == 33, let list = ListName(rawValue: bytes[0]) else {
      return nil
    }
    let (stamp, time, id) = bytes.withUnsafeBytes { bytes in
      (
        Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
        Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: Int64.self)),
        UUID(uuid: bytes.loadUnaligned(fromByteOffset: 17, as: uuid_t.self))
      )
    }
    guard Timestamp.years1To9999.contains(time), stamp == .min || Timestamp.years1To9999.contains(stamp) else {
      return nil
    }
    self.list = list
    self.stamp = stamp == .min ? nil : Timestamp(microseconds: stamp)
    self.time = Timestamp(microseconds: time)
    self.id = id
  }
}
