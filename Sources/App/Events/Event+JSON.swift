import Postgres

extension Event: JSONWritable {
  /// With too many guests, their lists leave the counts out: each answer would have to touch all these lists. A list
  /// with participants has no stamp.
  private var showsCounts: Bool {
    participants != nil || myRole != .guest || counts.total <= Event.maximumCounted
  }

  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("title", plan.title)
      $0.member("note", plan.note)
      $0.member("startTime", plan.startTime)
      $0.member("endTime", plan.endTime)
      $0.member("timeZone", plan.timeZone)
      $0.member("location", plan.location)
      $0.member("capacity", plan.capacity)
      $0.member("maxPlusOnes", plan.maxPlusOnes)
      $0.member("status", status.rawValue)
      $0.member("creator", creator)
      $0.member("hosts", hosts)
      $0.member("version", version)
      $0.member("createdAt", createdAt)
      $0.member("updatedAt", updatedAt)
      $0.member("myRole", myRole.rawValue)
      $0.member("myStatus", myStatus)
      $0.member("myPlusOnes", myPlusOnes)
      $0.member("answerBy", plan.answerBy)
      if showsCounts { $0.member("counts", counts) }
      if let participants { $0.member("participants", participants) }
    }
  }
}

extension Event.Location: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("name", name)
      $0.member("latitude", latitude)
      $0.member("longitude", longitude)
    }
  }
}

extension Event.Counts: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("invited", invited)
      $0.member("going", going)
      $0.member("maybe", maybe)
      $0.member("declined", declined)
      $0.member("waitlisted", waitlisted)
      $0.member("pending", pending)
    }
  }
}
