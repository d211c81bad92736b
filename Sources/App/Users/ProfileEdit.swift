/// The changes that a PATCH makes to the user's own profile.
struct ProfileEdit: Sendable {
  let username: Edit<String>
  let displayName: Edit<String>
  let bio: Edit<String?>
  let email: Edit<EmailAddress>
  let requestsFrom: Edit<User.Audience>
  let findableBy: Edit<User.Audience>
}
