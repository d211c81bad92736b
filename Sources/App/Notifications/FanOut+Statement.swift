import Postgres

extension FanOut {
  /// Whether a notice is the oldest that waits about its subject.
  static let isOldest: SQL = """
    q.died_at IS NULL AND NOT EXISTS (
      SELECT FROM notification_queue AS older
      WHERE \(chain.isAhead("older", of: "q")) AND older.died_at IS NULL
      OFFSET 0
    )
    """

  /// One step: claims notices, files them, and writes their deliveries.
  static func statement(_ scope: Scope, atMost subjects: Int = subjectsPerStep) -> SQL {
    """
    WITH window_end AS MATERIALIZED (\(windowEnd(scope))),
    \(claim(scope, atMost: subjects)),
    \(filing),
    \(delivering),
    sliced AS (
      UPDATE notification_queue AS q SET recipient_ids = part.recipient_ids[part.size + 1:]
      FROM parts AS part
      WHERE q.id = part.id AND part.size < cardinality(part.recipient_ids)
    ),
    consumed AS (
      DELETE FROM notification_queue AS q
      USING parts AS part
      WHERE q.id = part.id AND part.size = cardinality(part.recipient_ids)
    )
    SELECT count(*), coalesce(
        count(*) >= \(unescaped: "\(subjects)") OR sum(size) >= \(unescaped: "\(recipientsPerStep / 2)")
          OR bool_or(size < cardinality(recipient_ids)),
        false)
      OR count(*) < (SELECT count(*) FROM claimed)
      OR EXISTS (SELECT FROM following WHERE nth >= \(behindEach(subjects))),
      (SELECT id FROM window_end WHERE is_full)
    FROM parts
    """
  }

  private static func isIn(_ scope: Scope) -> SQL {
    switch scope {
    case .recent: isRecent
    case .after(let start): "q.id > \(start) AND q.id <= (SELECT id FROM window_end)"
    case .only(let id): "q.id = \(id)"
    }
  }

  /// The subquery is evaluated once. Without it, PostgreSQL would read the index from its start.
  private static let isRecent: SQL = """
    q.id > (
      SELECT coalesce(
        pg_sequence_last_value(pg_get_serial_sequence('notification_queue', 'id')::regclass), 0) - \(recentIDs)
    )
    """

  /// The greatest id of the window, and whether the window is full.
  private static func windowEnd(_ scope: Scope) -> SQL {
    guard case .after(let start) = scope else { return "SELECT NULL::bigint AS id, false AS is_full" }
    return """
      SELECT max(id) AS id, count(*) >= \(unescaped: "\(window)") AS is_full
      FROM (
        SELECT id FROM notification_queue WHERE id > \(start) AND died_at IS NULL ORDER BY id LIMIT \(window)
      ) AS waiting
      """
  }

  /// How many rows behind each subject's oldest one a step takes with it.
  private static func behindEach(_ subjects: Int) -> SQL {
    "(SELECT \(subjects - 1) / nullif(count(*), 0) FROM heads)"
  }

  /// Locks the oldest notice of each subject and those behind it, and decides how many recipients of each are served.
  ///
  /// The locking query itself checks whether a notice is the oldest, and recipients are taken only from its result. If
  /// another worker has sliced a row meanwhile, this step therefore sees the row as it is now. A run ends at a row that
  /// another transaction has locked.
  private static func claim(_ scope: Scope, atMost subjects: Int) -> SQL {
    """
    heads AS MATERIALIZED (
      SELECT q.id, q.notice_id, q.type, q.subject_id, q.person_id, q.recipient_ids, q.payload, q.created_at, q.trace
      FROM notification_queue AS q
      WHERE \(isIn(scope)) AND \(isOldest)
      ORDER BY q.id
      LIMIT \(subjects)
      FOR UPDATE OF q SKIP LOCKED
    ),
    following AS MATERIALIZED (
      SELECT heads.id AS head, next.nth, q.id, q.notice_id, q.type, q.subject_id, q.person_id, q.recipient_ids, q.payload,
        q.created_at, q.trace
      FROM heads
      CROSS JOIN LATERAL (
        SELECT id, row_number() OVER (ORDER BY id) AS nth
        FROM (
          SELECT b.id FROM notification_queue AS b
          WHERE \(chain.range("b", behind: "heads")) AND b.died_at IS NULL
          ORDER BY \(chain.order("b"))
          LIMIT \(behindEach(subjects))
        ) AS behind
      ) AS next
      JOIN notification_queue AS q ON q.id = next.id
      WHERE cardinality(heads.recipient_ids) < \(recipientsPerStep)
      FOR UPDATE OF q SKIP LOCKED
    ),
    claimed AS (
      SELECT id AS head, id, notice_id, type, subject_id, person_id, recipient_ids, payload, created_at, trace FROM heads
      UNION ALL
      SELECT head, id, notice_id, type, subject_id, person_id, recipient_ids, payload, created_at, trace
      FROM (SELECT *, row_number() OVER (PARTITION BY head ORDER BY id) AS locked FROM following) AS each
      WHERE nth = locked
    ),
    sized AS (
      SELECT *, (sum(cardinality(recipient_ids)) OVER run)::integer - cardinality(recipient_ids) AS before
      FROM claimed
      WINDOW run AS (PARTITION BY head ORDER BY id)
    ),
    shares AS (
      SELECT head, least(wanted, \(recipientsPerStep) - (sum(wanted) OVER (ORDER BY wanted, head))::integer + wanted) AS share
      FROM (
        SELECT head, least(
          (sum(cardinality(recipient_ids)))::integer,
          CASE WHEN (SELECT count(*) FROM heads) > 1 THEN \(recipientsPerSubject) ELSE \(recipientsPerStep) END) AS wanted
        FROM claimed
        GROUP BY head
      ) AS each
    ),
    parts AS MATERIALIZED (
      SELECT sized.*, least(cardinality(sized.recipient_ids), shares.share - sized.before) AS size
      FROM sized
      JOIN shares ON shares.head = sized.head
      WHERE sized.before < shares.share
    )
    """
  }

  /// Files the notices in the inboxes and advances each recipient's stamp once, by a microsecond for each notice. They
  /// are filed above the inbox's floor, which may be in the future after the clock was wrong. Skips
  /// recipients without an account and those who cannot see the user whom the notice names. A guest's answer replaces
  /// the guest's earlier unread answers. So does a request for approval. A visitor is known by the payload's `guestId`.
  private static let filing: SQL = """
    addressed AS MATERIALIZED (
      SELECT part.id AS place, part.type, part.subject_id, part.person_id, part.payload, part.created_at, part.trace,
        recipient.id AS recipient_id, notification_id(part.notice_id, recipient.id) AS id,
        row_number() OVER (PARTITION BY recipient.id ORDER BY part.id) AS nth,
        count(*) OVER (PARTITION BY recipient.id) AS notices
      FROM parts AS part
      CROSS JOIN LATERAL unnest(part.recipient_ids[1:part.size]) AS recipient (id)
      WHERE EXISTS (SELECT FROM user_stamps AS s WHERE s.user_id = recipient.id OFFSET 0)
        AND NOT (part.type = ANY(\(aboutOneGuest)) AND EXISTS (
          SELECT FROM parts AS later
          WHERE later.type = part.type AND later.subject_id = part.subject_id AND \(guest("later")) = \(guest("part"))
            AND later.id > part.id AND recipient.id = ANY(later.recipient_ids[1:later.size])
        ))
        AND NOT (part.type = ANY(\(aboutVisitors)) AND part.person_id IS NULL AND EXISTS (
          SELECT FROM parts AS later
          WHERE later.type = ANY(\(aboutVisitors)) AND later.subject_id = part.subject_id AND later.id > part.id
            AND later.payload->'guests' @> \(named("part")) AND recipient.id = ANY(later.recipient_ids[1:later.size])
        ))
        AND NOT EXISTS (
          SELECT FROM hidden WHERE hidden.user_id = recipient.id AND hidden.hidden_id = part.person_id OFFSET 0
        )
    ),
    stamped AS (
      INSERT INTO user_stamps AS s (user_id, notifications)
      SELECT recipient_id, timestamptz 'epoch' + max(notices) * interval '1 microsecond'
      FROM addressed
      GROUP BY recipient_id
      ORDER BY recipient_id
      ON CONFLICT (user_id) DO UPDATE SET
        notifications = greatest(
          \(Stamps.next("notifications", step: "(excluded.notifications - timestamptz 'epoch')")),
          s.inbox_floor + (excluded.notifications - timestamptz 'epoch')
        )
      RETURNING s.user_id, s.notifications AS stamp
    ),
    filed AS (
      INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, person_id, payload, created_at)
      SELECT a.recipient_id, stamped.stamp - (a.notices - a.nth) * interval '1 microsecond', a.id, a.type, a.subject_id,
        a.person_id, a.payload, a.created_at
      FROM addressed AS a
      JOIN stamped ON stamped.user_id = a.recipient_id
    ),
    superseded AS (
      DELETE FROM notifications AS n
      USING addressed
      JOIN stamped ON stamped.user_id = addressed.recipient_id
      WHERE addressed.type = ANY(\(aboutOneGuest)) AND n.person_id = addressed.person_id
        AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.type = addressed.type
        AND n.read_at IS NULL
    ),
    superseded_of_visitors AS (
      DELETE FROM notifications AS n
      USING addressed
      JOIN stamped ON stamped.user_id = addressed.recipient_id
      WHERE addressed.type = ANY(\(aboutOneGuest)) AND addressed.person_id IS NULL
        AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.type = addressed.type
        AND n.payload->>'guestId' = addressed.payload->>'guestId' AND n.read_at IS NULL
    ),
    superseded_by_several AS (
      DELETE FROM notifications AS n
      USING addressed
      JOIN stamped ON stamped.user_id = addressed.recipient_id
      WHERE addressed.type = ANY(\(aboutVisitors)) AND addressed.payload ? 'guests' AND n.type = ANY(\(aboutVisitors))
        AND n.recipient_id = addressed.recipient_id AND n.subject_id = addressed.subject_id AND n.person_id IS NULL
        AND addressed.payload->'guests' @> \(named("n")) AND n.read_at IS NULL
    )
    """

  /// For these types, a guest's newest notice replaces the earlier ones.
  private static let aboutOneGuest: [Notice.Kind] = [.invitationAnswered, .guestAnswered, .approvalRequested]

  /// For these types, a notice about several visitors replaces those about the ones whom it names.
  private static let aboutVisitors: [Notice.Kind] = [.guestAnswered, .approvalRequested]

  /// A guest of a notice, as an element of the `guests` of a notice about several.
  private static func named(_ row: SQL) -> SQL {
    "jsonb_build_array(jsonb_build_object('guestId', \(row).payload->'guestId'))"
  }

  private static func guest(_ row: SQL) -> SQL { "coalesce(\(row).person_id::text, \(row).payload->>'guestId')" }

  /// Consecutive notices about a subject with the same key may become one delivery: edits of an event, and one guest's
  /// answers or requests.
  private static func mergeKey(_ row: SQL) -> SQL {
    """
    CASE \(row).type
      WHEN \(Notice.Kind.eventUpdated) THEN \(row).type
      WHEN \(Notice.Kind.invitationAnswered) THEN \(row).type || \(row).person_id
      WHEN \(Notice.Kind.guestAnswered) THEN \(row).type || \(guest(row))
      WHEN \(Notice.Kind.approvalRequested) THEN \(row).type || \(guest(row))
    END
    """
  }

  /// Writes one delivery for each device of the recipients, except for muted types, ended sessions, and events that keep
  /// their local time. A notice that
  /// can be merged joins the last waiting delivery of the device and subject, unless a worker has ever claimed it.
  private static let delivering: SQL = """
    pushes AS MATERIALIZED (
      SELECT addressed.*, device.id AS device_id, \(mergeKey("addressed")) AS merge_key
      FROM addressed
      CROSS JOIN LATERAL (
        SELECT d.id
        FROM devices AS d
        JOIN sessions ON sessions.id = d.session_id AND \(Session.isOpen)
        WHERE d.user_id = addressed.recipient_id
        OFFSET 0
      ) AS device
      WHERE NOT EXISTS (
        SELECT FROM muted_notifications AS m
        WHERE m.user_id = addressed.recipient_id AND m.type = addressed.type
        OFFSET 0
      )
      AND addressed.payload->>'cause' IS DISTINCT FROM \(Notice.zoneRules)
    ),
    merged AS MATERIALIZED (
      SELECT device_id, subject_id, run, max(place) AS place, max(merge_key) AS merge_key,
        (array_agg(id ORDER BY place DESC))[1] AS id, (array_agg(recipient_id))[1] AS recipient_id, max(type) AS type,
        (array_agg(person_id))[1] AS person_id, merged_payload(payload ORDER BY place) AS payload,
        max(created_at) AS created_at, (array_agg(trace ORDER BY place DESC))[1] AS trace
      FROM (
        SELECT *, count(*) FILTER (WHERE merge_key IS DISTINCT FROM previous OR merge_key IS NULL) OVER chain AS run
        FROM (SELECT *, lag(merge_key) OVER chain AS previous FROM pushes WINDOW chain AS (
          PARTITION BY device_id, subject_id ORDER BY place
        )) AS each
        WINDOW chain AS (PARTITION BY device_id, subject_id ORDER BY place)
      ) AS each
      GROUP BY device_id, subject_id, run
    ),
    newest AS MATERIALIZED (
      SELECT chain.device_id, chain.subject_id, last.id, last.due_at, EXISTS (
          SELECT FROM deliveries AS d
          WHERE \(Delivery.chain.range("d", with: "chain")) AND d.died_at IS NULL
          ORDER BY \(Delivery.chain.order("d"))
          OFFSET \(deliveriesPerSubject - 1)
        ) AS is_full
      FROM (SELECT DISTINCT device_id, subject_id FROM merged) AS chain
      CROSS JOIN LATERAL (
        SELECT d.id, d.due_at FROM deliveries AS d
        WHERE \(Delivery.chain.range("d", with: "chain")) AND d.died_at IS NULL
        ORDER BY \(Delivery.chain.order("d", isDescending: true))
        LIMIT 1
      ) AS last
    ),
    joined AS MATERIALIZED (
      SELECT d.id, merged.device_id, merged.subject_id, merged.id AS notification_id, merged.created_at, merged.trace,
        merged_payload(d.payload, merged.payload) AS payload
      FROM newest
      JOIN merged ON merged.device_id = newest.device_id AND merged.subject_id = newest.subject_id AND merged.run = 1
      JOIN deliveries AS d ON d.id = newest.id
      WHERE d.worker_id IS NULL AND d.attempts = 0 AND d.died_at IS NULL AND \(mergeKey("d")) = merged.merge_key
      FOR UPDATE OF d SKIP LOCKED
    ),
    joining AS (
      UPDATE deliveries AS d
      SET notification_id = joined.notification_id, payload = joined.payload, created_at = joined.created_at,
        trace = joined.trace
      FROM joined
      WHERE d.id = joined.id
    ),
    delivered AS (
      INSERT INTO deliveries (
        notification_id, recipient_id, device_id, type, subject_id, person_id, payload, created_at, due_at, trace
      )
      SELECT merged.id, merged.recipient_id, merged.device_id, merged.type, merged.subject_id, merged.person_id,
        merged.payload, merged.created_at, greatest(now(), newest.due_at), merged.trace
      FROM merged
      LEFT JOIN newest ON newest.device_id = merged.device_id AND newest.subject_id = merged.subject_id
      LEFT JOIN joined ON joined.device_id = merged.device_id AND joined.subject_id = merged.subject_id AND merged.run = 1
      WHERE joined.id IS NULL AND newest.is_full IS NOT TRUE
      ORDER BY merged.place, merged.device_id
    )
    """
}
