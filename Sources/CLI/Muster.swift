import App
import ArgumentParser
import Postgres

@main
struct Muster: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "muster",
    abstract: "The backend of a social planning app: who is up for what, when?",
    discussion: """
      Configuration comes from the environment, and from a .env file in the working directory:

        DATABASE_URL                 a libpq URI, such as postgresql://muster@localhost/muster
        MUSTER_ACCESS_TOKEN_KEYS     kid:base64,...  at least 32 bytes each; the first signs, all verify
        MUSTER_REFRESH_TOKEN_KEYS    the same for refresh tokens (`muster keys` prints both)
        MUSTER_ACCESS_TOKEN_SECONDS  how long an access token lives (900)
        MUSTER_SCRYPT                what hashing a password costs (ln=15,r=8,p=3)
        MUSTER_RATE_LIMITS           off for load tests (on)
        MUSTER_TRUSTED_PROXIES       whose X-Forwarded-For is believed, like 10.0.0.0/8,::1 (none)
        MUSTER_APPLE_CLIENT_IDS      the apps that may sign in with Apple, comma-separated (none)
        MUSTER_GOOGLE_CLIENT_IDS     the same for Google (none)
        MUSTER_APPLE_TEAM_ID, MUSTER_APPLE_KEY_ID, MUSTER_APPLE_PRIVATE_KEY
                                     Apple's key, to revoke its grants when accounts are deleted (none)
        MUSTER_APPLE_KEYS_URL, MUSTER_APPLE_TOKEN_URL, MUSTER_APPLE_REVOKE_URL, MUSTER_GOOGLE_KEYS_URL
                                     where the providers are (https://appleid.apple.com/auth/..., Google's)
        MUSTER_TRUSTED_CERTIFICATES  a PEM file of certificates to trust besides the system's (none)
        MUSTER_PGBOUNCER             on where DATABASE_URL leads through PgBouncer in transaction mode (off)
        MUSTER_LOG_REQUESTS          failures or all (failures)
        MUSTER_PUBLIC_URL            where clients find the service, for the URLs of pictures (where serve listens)
        MUSTER_MAIL_WEBHOOK          where mails are posted to be sent; without it they wait in the queue
        MUSTER_MAIL_WEBHOOK_SECRET   what signs them: whsec_ and 24 to 64 bytes in base64
        MUSTER_WEBHOOK_ALLOW_PRIVATE on lets webhooks be plain http, and have private addresses (off)
        MUSTER_APNS_TEAM_ID, MUSTER_APNS_KEY_ID, MUSTER_APNS_PRIVATE_KEY
                                     Apple's key, to push to iOS devices (none)
        MUSTER_APNS_TOPIC            the app's id, for devices that name none (none)
        MUSTER_FCM_SERVICE_ACCOUNT   Google's key, to push to Android devices: JSON, or a file with it (none)
        MUSTER_APNS_URL, MUSTER_APNS_SANDBOX_URL, MUSTER_FCM_URL
                                     where the push services are (Apple's, Google's)
        MUSTER_METRICS_LISTEN        where /metrics is, or off (127.0.0.1:9464, a worker's 127.0.0.1:9465)
      """,
    subcommands: [Dev.self, Serve.self, Worker.self, Migrate.self, Seed.self, Queue.self, StampsCommand.self, Keys.self])

  /// Every failure is one line on stderr.
  static func main() async {
    do {
      var command = try parseAsRoot()
      if var asyncCommand = command as? any AsyncParsableCommand {
        try await asyncCommand.run()
      } else {
        try command.run()
      }
    } catch let error as PostgresError {
      exit(withError: Failure("the database: \(error.description.split(separator: "\n").first ?? "unknown")"))
    } catch let error as AppError {
      exit(withError: Failure(error.message))
    } catch {
      exit(withError: error)
    }
  }
}

/// A line for whoever sits at the terminal.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}
