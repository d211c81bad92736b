/// What a PATCH changes of one's own profile.
struct ProfileEdit: Sendable {
  let username: Edit<String>
  let displayName: Edit<String>
  let bio: Edit<String?>
  let email: Edit<String>
}
