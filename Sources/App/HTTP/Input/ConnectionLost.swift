/// The client has disconnected or cancelled its request while it was sending the body.
struct ConnectionLost: Error {}
