extension User: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.user(
      id: id, username: username, displayName: displayName, bio: bio, pictureUrl: PublicURL.absolute(pictureURL),
      email: email, emailVerified: isEmailVerified, pendingEmail: pendingEmail, hasPassword: hasPassword,
      identities: identities, requestsFrom: requestsFrom, findableBy: findableBy, createdAt: createdAt,
      timestamp: stamp.map(Stamp.init))
  }
}

extension Person: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.person(id: id, username: username, displayName: displayName, pictureUrl: PublicURL.absolute(pictureURL))
  }
}

extension Recommendation: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.recommendation(user: person, mutualFriendCount: mutualFriendCount)
  }
}

extension PublicProfile: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.publicProfile(
      id: person.id, username: person.username, displayName: person.displayName, bio: bio,
      pictureUrl: PublicURL.absolute(person.pictureURL), friendship: friendship, mutualFriendCount: mutualFriendCount)
  }
}
