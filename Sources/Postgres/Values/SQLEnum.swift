/// A Swift enumeration for a PostgreSQL enum. It needs no registration, and its values are parameters without a cast:
///
///     enum Mood: String, SQLEnum { case sad, ok, happy }
///     try await database.execute("INSERT INTO days (mood) VALUES (\(Mood.happy))")
///
/// The server infers the type from the statement, so it may differ between databases and change with a migration. An
/// enumeration that is stored as `text` conforms to ``SQLValue`` instead.
public protocol SQLEnum: SQLValue, RawRepresentable where RawValue == String {}

extension SQLEnum {
  public static var sqlType: SQLType { .inferredText }
}
