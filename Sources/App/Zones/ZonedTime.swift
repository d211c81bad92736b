import Postgres

/// A time, and the offset from UTC with which it was planned. Together they are a reading of the clocks in a zone.
struct ZonedTime: Sendable, Equatable {
  let time: Timestamp
  /// In seconds east of UTC.
  let offset: Int

  var reading: LocalTimestamp { LocalTimestamp(microseconds: time.adding(seconds: offset).microseconds) }
}

/// A time as a client gives it.
enum GivenTime: Sendable {
  case instant(Timestamp)
  /// A reading of the clocks in the event's zone.
  case reading(LocalTimestamp)
}

extension Zone {
  /// In seconds east of UTC.
  func offset(at time: Timestamp) -> Int { offset(at: time.wholeSeconds).seconds }

  /// The time on the zone's clocks.
  func reading(at time: Timestamp) -> LocalTimestamp { ZonedTime(time: time, offset: offset(at: time)).reading }

  func time(_ given: GivenTime) -> ZonedTime {
    switch given {
    case .instant(let time): ZonedTime(time: time, offset: offset(at: time))
    case .reading(let reading): time(showing: reading)
    }
  }

  /// The time at which the zone's clocks show a reading.
  ///
  /// - Parameter offset: decides while the clocks show the reading with it. Otherwise, the first of two times counts, or
  ///   the offset before the gap.
  func time(showing reading: LocalTimestamp, preferring offset: Int? = nil) -> ZonedTime {
    let wall = Timestamp(microseconds: reading.microseconds)
    let offset = self.offset(showing: wall.wholeSeconds, preferring: offset)
    return ZonedTime(time: wall.adding(seconds: -offset), offset: offset)
  }

  /// Whether the zone's clocks show the reading of this time twice.
  func isAmbiguous(at time: Timestamp) -> Bool {
    offsets(showing: time.wholeSeconds + offset(at: time)).count > 1
  }
}

extension Timestamp {
  /// Rounded down.
  fileprivate var wholeSeconds: Int {
    Int(microseconds >= 0 ? microseconds / 1_000_000 : (microseconds - 999_999) / 1_000_000)
  }
}
