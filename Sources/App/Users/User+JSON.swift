extension User: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("username", username)
      $0.member("displayName", displayName)
      $0.member("bio", bio)
      $0.member("pictureUrl", PublicURL.absolute(pictureURL))
      $0.member("email", email)
      $0.member("emailVerified", isEmailVerified)
      $0.member("pendingEmail", pendingEmail)
      $0.member("hasPassword", hasPassword)
      $0.member("identities", identities)
      $0.member("requestsFrom", requestsFrom.rawValue)
      $0.member("findableBy", findableBy.rawValue)
      $0.member("createdAt", createdAt)
      $0.member("timestamp", stamp.map(Stamp.init))
    }
  }
}

extension Person: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("username", username)
      $0.member("displayName", displayName)
      $0.member("pictureUrl", PublicURL.absolute(pictureURL))
    }
  }
}

extension Recommendation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("user", person)
      $0.member("mutualFriendCount", mutualFriendCount)
    }
  }
}

extension PublicProfile: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", person.id)
      $0.member("username", person.username)
      $0.member("displayName", person.displayName)
      $0.member("bio", bio)
      $0.member("pictureUrl", PublicURL.absolute(person.pictureURL))
      $0.member("friendship", friendship.rawValue)
      $0.member("mutualFriendCount", mutualFriendCount)
    }
  }
}
