import Foundation

/// Lists, and the writes that they show in addition to the copies.
struct MergedLists: Sendable {
  struct Step: Sendable, Hashable {
    let write: Write
    /// When the user made it.
    let time: Date
  }

  private(set) var lists: Lists
  private(set) var steps: [Step] = []

  init(lists: Lists) { self.lists = lists }

  /// Keeps earlier lists that are the same as these. Long lists are known to be the same by their memory alone: they
  /// are not compared when they are shown. If all writes are about single events, only these events are compared.
  ///
  /// - Parameter collections: those whose copies have not changed.
  mutating func keep(_ collections: Set<CacheCollection>, of earlier: MergedLists) {
    let written = (earlier.steps + steps).map(\.write.event)
    var (new, old) = (lists, earlier.lists)
    if !written.contains(nil) {
      let ids = Set(written.compactMap { $0 })
      (new, old) = (EventPart(of: new, with: ids).lists, EventPart(of: old, with: ids).lists)
    }
    for collection in collections where collection.facts.isSame(new, old) {
      collection.facts.take(&lists, earlier.lists)
    }
  }

  /// Shows further writes. Those of single events look only at these events, because each would otherwise search lists
  /// with thousands of them several times.
  mutating func add(_ new: some Collection<Step>) {
    steps += new
    var rest = new[...]
    while let step = rest.first {
      let run = rest.prefix { $0.write.event != nil }
      if run.isEmpty {
        step.write.apply(to: &lists, at: step.time)
        rest = rest.dropFirst()
      } else {
        var part = EventPart(of: lists, with: Set(run.compactMap(\.write.event)))
        for step in run { step.write.apply(to: &part.lists, at: step.time) }
        part.replace(in: &lists)
        rest = rest.dropFirst(run.count)
      }
    }
  }
}

/// Lists with some of the events only, and where these stand.
struct EventPart {
  var lists: Lists
  private let events: [Int]
  private let invitations: [Int]

  init(of lists: Lists, with ids: Set<Event.ID>) {
    self.lists = lists
    let events = lists.events ?? []
    let invitations = lists.invitations ?? []
    self.events = events.indices.filter { ids.contains(events[$0].id) }
    self.invitations = invitations.indices.filter { ids.contains(invitations[$0].event.id) }
    self.lists.events = lists.events.map { _ in self.events.map { events[$0] } }
    self.lists.invitations = lists.invitations.map { _ in self.invitations.map { invitations[$0] } }
  }

  /// Puts the events back where they were, and sorts them if they have moved, or if there are new ones.
  func replace(in whole: inout Lists) {
    let new = lists.events ?? []
    var left = Dictionary(new.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
    var isSorted = true
    for place in events {
      guard let old = whole.events?[place], let event = left.removeValue(forKey: old.id) else { continue }
      isSorted = isSorted && event.startTime == old.startTime
      whole.events?[place] = event
    }
    whole.events?.append(contentsOf: new.filter { left[$0.id] != nil })
    for (place, invitation) in zip(invitations, lists.invitations ?? []) { whole.invitations?[place] = invitation }
    if !isSorted || !left.isEmpty { whole.sortEvents() }
    whole.surroundings = lists.surroundings
  }
}

extension Write {
  /// The event, if the write changes nothing else in lists.
  fileprivate var event: Event.ID? {
    switch self {
    case .answer(_, let id, _), .createEvent(_, let id), .editEvent(let id, _, _), .cancelEvent(let id, _),
      .invite(_, let id), .withdraw(_, let id):
      id
    default: nil
    }
  }
}
