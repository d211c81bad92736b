import Foundation

/// The events of one day: a section of a feed.
public struct EventDay: Sendable, Hashable, Identifiable {
  /// The beginning of the day.
  public let date: Date
  /// By their start.
  public let events: [Event]

  public var id: Date { date }
}

extension Sequence<Event> {
  /// The events by the day on which they start, for the sections of a feed.
  ///
  ///     ForEach(store.events.items.byDay()) { day in
  ///       Section(day.date.formatted(date: .complete, time: .omitted)) { ... }
  ///     }
  ///
  /// - Parameter calendar: the reader's. Its time zone says when a day begins, wherever the event takes place.
  public func byDay(in calendar: Calendar = .current) -> [EventDay] {
    Dictionary(grouping: self) { calendar.startOfDay(for: $0.startTime) }
      .map { day, events in
        EventDay(date: day, events: events.sorted { ($0.startTime, $0.id.wire) < ($1.startTime, $1.id.wire) })
      }
      .sorted { $0.date < $1.date }
  }
}
