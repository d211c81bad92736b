import Postgres

/// Pushes that wake the phone's app, so that its lists are up to date before the user opens it. Every notification
/// changes at least the inbox. The push that shows it carries the request: nothing more is sent, except to Android.
extension Delivery {
  /// Apple lets an app run two or three times an hour for this, and ignores the rest.
  private static let wakesPerHour = 2
  /// Seconds in which pushes are one burst. The first of them wakes the app.
  private static let burst = 600.0

  /// A SQL condition: whether a push may wake the app on the device `d`.
  private static let mayWake: SQL = """
    d.platform IN ('ios', 'android')
      AND coalesce(d.woken_at[cardinality(d.woken_at)] <= now() - make_interval(secs => \(burst)), true)
      AND coalesce(d.woken_at[cardinality(d.woken_at) - \(wakesPerHour - 1)] <= now() - interval '1 hour', true)
    """

  /// The same for the row `q`, which may set only the badge. NULL without a device.
  static let mayWakeApp: SQL = "q.type <> \(Push.badgeOnly) AND \(mayWake)"

  /// Records that a push is about to wake the app on each of some devices. Most pushes wake none, and write nothing.
  ///
  /// The count is in the row of the device, because several workers send to it. It is written before the send: a
  /// worker that is killed in between costs a phone one of its wakes, but no phone gets more.
  ///
  /// - Returns: those that may still be woken: another worker may have been faster.
  static func noteWake(on devices: some Sequence<Device.ID>, in database: Database) async throws -> Set<Device.ID> {
    // Skipping locked rows: a worker never waits here. Another one wakes the device, or it is changed or removed.
    let results = try await database.batch(
      """
      WITH due AS MATERIALIZED (
        SELECT d.id FROM devices AS d WHERE d.id = ANY(\(Array(devices))) AND \(mayWake)
        FOR NO KEY UPDATE OF d SKIP LOCKED
      )
      UPDATE devices AS d
      SET woken_at = (d.woken_at || now())[greatest(cardinality(d.woken_at) - \(wakesPerHour - 2), 1):]
      FROM due
      WHERE d.id = due.id
      RETURNING d.id
      """)
    return Set(try results[0].map { try $0[0] })
  }
}
