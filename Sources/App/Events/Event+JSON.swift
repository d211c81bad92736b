import Postgres

extension Event: JSONWritable {
  /// With too many guests, their lists leave the counts out: each answer would have to touch all these lists. A list
  /// with participants has no stamp.
  private var showsCounts: Bool {
    participants != nil || myRole != .guest || counts.total <= Event.maximumCounted
  }

  func write(to json: inout JSONWriter) {
    json.event(
      id: id, title: plan.title, note: plan.note, startTime: plan.startTime, endTime: plan.endTime,
      timeZone: plan.timeZone, location: plan.location, url: plan.url, capacity: plan.capacity,
      maxPlusOnes: plan.maxPlusOnes,
      status: status, creator: creator, hosts: hosts, version: version, createdAt: createdAt, updatedAt: updatedAt,
      myRole: myRole, myStatus: Word(rawValue: myStatus), myPlusOnes: myPlusOnes, answerBy: plan.answerBy,
      counts: showsCounts ? counts : nil, participants: participants)
  }
}

extension Event.Location: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.location(name: name, latitude: latitude, longitude: longitude)
  }
}

extension Event.Counts: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.counts(
      invited: invited, going: going, maybe: maybe, declined: declined, waitlisted: waitlisted, pending: pending)
  }
}
