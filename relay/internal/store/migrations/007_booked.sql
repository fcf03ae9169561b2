-- booked is what the caps count for an attempt while it is not dead: its cost, and of
-- a swap's first leg what the second may cost too, until that is final; 0 of the second.
-- Null of one that an earlier release recorded: its cost. That release may run on beside
-- this one; what it buries, or ends, may leave the caps a swap too high or too low for a day.
-- NOT VALID as in 004: all rows there are hold a null, which no read has to find out.
ALTER TABLE attempts ADD COLUMN booked bigint,
    ADD CONSTRAINT attempts_booked_check CHECK (booked >= 0) NOT VALID;

---- create above / drop below ----

ALTER TABLE attempts DROP COLUMN booked;
